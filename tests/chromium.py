"""The browser that the page tests drive. `python -m tests.chromium` finds one or brings one, and says which."""

import contextlib
import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# A container's root has no user namespace to sandbox in, and nothing here talks to the outside.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class NoBrowser(RuntimeError):
    """There is no Chromium, and none could be brought."""


def path() -> str:
    """The Chromium to launch: CONCH_CHROMIUM, the system's, else Playwright's own. Raises NoBrowser."""
    named = os.environ.get("CONCH_CHROMIUM")
    found = [named] if named else [*filter(None, map(shutil.which, NAMES)), *_playwrights_own()]
    if not found:
        raise NoBrowser("no Chromium: `make test` brings one, CONCH_CHROMIUM names one")
    return found[0]


def _playwrights_own() -> list[str]:
    folder = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or str(
        Path("~/Library/Caches/ms-playwright" if sys.platform == "darwin" else "~/.cache/ms-playwright").expanduser()
    )
    kinds = ("chrome-linux*/chrome", "chrome-mac*/*.app/Contents/MacOS/*")
    return sorted(one for kind in kinds for one in glob.glob(f"{folder}/chromium-*/{kind}"))  # noqa: PTH207


def bring() -> str:
    """Find a Chromium, or install one: Playwright's own, else the system's package."""
    with contextlib.suppress(NoBrowser):
        return path()
    say("Bringing a browser for the page tests (once)")
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*as_root, "apt-get", "-qq", "-y", "--no-install-recommends"]
    for way in (
        [[sys.executable, "-m", "playwright", "install", "chromium"]],
        [[*apt, "update"], [*apt, "install", "chromium"]],
    ):
        try:
            for command in way:
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=_quiet(), timeout=240)
            return _that_starts()
        except (NoBrowser, OSError, subprocess.SubprocessError) as error:
            say(str(error))
    raise NoBrowser("no Chromium could be brought: install one, or name one with CONCH_CHROMIUM")


def say(words: str) -> None:
    """Tell whoever runs make, at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _that_starts() -> str:
    """The browser, if it starts: Playwright's own may have come without the libraries that it needs."""
    for one in [*_playwrights_own(), *filter(None, map(shutil.which, NAMES))]:
        asked = [one, "--headless", *ARGUMENTS, "--dump-dom", "about:blank"]
        if subprocess.run(asked, check=False, capture_output=True, timeout=60).returncode == 0:
            return one
    raise NoBrowser("nothing that starts came of it")


def _quiet() -> dict[str, str]:
    return os.environ | {"DEBIAN_FRONTEND": "noninteractive"}


if __name__ == "__main__":
    try:
        say(f"Browser: {bring()}")
    except NoBrowser as error:
        sys.exit(f"conch: {error}")
