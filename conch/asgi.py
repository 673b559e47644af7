"""The ASGI door: Django, and the life of the process around it."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conch.settings")

import django

django.setup(set_prefix=False)

from conch.bodies import with_body_limit  # noqa: E402  needs the apps loaded
from conch.handler import Handler  # noqa: E402  the same
from conch.lifespan import with_lifespan  # noqa: E402  the same

application = with_lifespan(with_body_limit(Handler()))
