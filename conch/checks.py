"""What `manage.py check` and every start look at: each finding says what is wrong and what to do about it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register  # noqa: A004 - Django's name for it

LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@register("conch")
def data_folder_is_private(_configs: object = None, **_facts: Any) -> Sequence[CheckMessage]:
    """Chats and sealed keys are kept there: Conch must be able to write, and others must not be able to read."""
    folder = Path(settings.CONCH_DATA)
    if not os.access(folder, os.W_OK | os.X_OK):
        return [
            Error(
                f"CONCH_DATA: {folder} can't be written to.",
                hint="Give it to the user that runs Conch, or name another folder with CONCH_DATA.",
                id="conch.E001",
            )
        ]
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return [
            Warning(
                f"CONCH_DATA: others on this machine can look into {folder}.",
                hint=f"chmod 700 {folder}",
                id="conch.W001",
            )
        ]
    return []


@register("conch")
def listening_elsewhere_goes_over_https(_configs: object = None, **_facts: Any) -> Sequence[CheckMessage]:
    """Sign-in links and sessions in the clear are for loopback only."""
    if settings.CONCH_HOST in LOOPBACK or settings.CONCH_HTTPS:
        return []
    return [
        Warning(
            f"Conch listens on {settings.CONCH_HOST} without HTTPS: who can read the network can sign in.",
            hint="Put a server that speaks HTTPS before it and set CONCH_HTTPS=on (docs/running.md).",
            id="conch.W002",
        )
    ]


@register("conch")
def there_is_a_model_on_this_computer(_configs: object = None, **_facts: Any) -> Sequence[CheckMessage]:
    """Conch works without one; then nobody answers when no account can."""
    from conch.engines import local_models

    known = local_models.facts(local_models.setup())
    return [] if known.present else [Info(known.why_missing, id="conch.I001")]


@register("conch")
def engines_can_be_imported(_configs: object = None, **_facts: Any) -> Sequence[CheckMessage]:
    """An engine that an entry point names but can't be found would fail at a person's first message."""
    from importlib.util import find_spec

    from conch.engines.registry import paths

    missing = []
    for engine_id, path in paths().items():
        try:
            found = find_spec(path.partition(":")[0])
        except ModuleNotFoundError:
            found = None
        if found is None:
            missing.append(
                Warning(
                    f"The engine {engine_id} is said to be {path}, and there is no such module.",
                    hint='Remove or mend the package whose entry point "conch.engines" names it.',
                    id="conch.W003",
                )
            )
    return missing
