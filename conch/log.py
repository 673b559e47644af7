"""Log lines, as text or as JSON, with what they are about, and without secrets or anybody's words.

Whatever ends up in a message or a traceback, keys, tokens and sign-in links don't. A turn runs in a context of its own
(conch/turns/run.py), so what is said of it there carries its id and its account by itself.
"""

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

# A sign-in link's path, what leads back from a server's sign-in, keys by their usual beginnings, our own tokens, and
# what follows a word that names a secret.
SECRETS = (
    re.compile(r"(/signin/)[\w-]{16,}"),
    re.compile(r"([?&](?:code|state)=)[^&\s\"']{6,}"),
    re.compile(r"\b((?:sk|conch|gh[a-z]|github_pat|xox[a-z])[-_]|AIza|ya29\.)[\w-]{8,}"),
    re.compile(r"(?i)(\b(?:bearer|authorization[\"']?\s*[:=]\s*[\"']?(?:basic|token|apikey))\s+)[^\s\"',;]{6,}"),
    re.compile(r"(\w://[^\s/:@]*:)[^\s/@]+(?=@)"),
    re.compile(
        r"(?i)((?:api[_-]?key|authorization|password|secret|access_token|refresh_token|id_token)[\"']?\s*[:=]\s*[\"']?)"
        r"(?!bearer\b)[^\s\"',;}]{6,}"
    ),
    re.compile(r"(\beyJ)[\w-]{8,}\.[\w-]+\.[\w-]*"),
)
_facts: ContextVar[dict[str, Any] | None] = ContextVar("conch_log_facts", default=None)


def about(**facts: Any) -> None:
    """From here on in this context, log lines say what they are about: ids and states, never words or secrets."""
    _facts.set({**(_facts.get() or {}), **facts})


class Scrubbed(logging.Formatter):
    """A line of text: as usual, with what it is about at its end, then secrets taken out, of the traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as it may be written down."""
        line = super().format(record)
        facts = " ".join(f"{name}={value}" for name, value in _of(record).items())
        first, newline, rest = line.partition("\n")
        return scrubbed(f"{first} [{facts}]{newline}{rest}" if facts else line)


class Json(logging.Formatter):
    """A line of JSON: at, level, logger, said, what it is about, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as it may be written down."""
        line: dict[str, Any] = {
            "at": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "said": scrubbed(record.getMessage()),
            **_of(record),
        }
        if record.exc_info:
            line["traceback"] = scrubbed(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def _of(record: logging.LogRecord) -> dict[str, Any]:
    """What the line is about: from its context, and what it was given itself."""
    return {**(_facts.get() or {}), **getattr(record, "facts", {})}


def scrubbed(text: str) -> str:
    """The text with an ellipsis where a secret stood."""
    for secret in SECRETS:
        text = secret.sub(r"\1…", text)
    return text
