"""The ASGI door: Django, and the life of the process around it."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "conch.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from conch.bodies import with_body_limit  # noqa: E402  needs the apps loaded
from conch.lifespan import with_lifespan  # noqa: E402  the same

application = with_lifespan(with_body_limit(django_application))
