"""Log lines without secrets: whatever ends up in a message or a traceback, keys, tokens and sign-in links don't."""

import logging
import re

# A sign-in link's path, keys by their usual beginnings, our own tokens, and what follows a word that names a secret.
SECRETS = (
    re.compile(r"(/signin/)[\w-]{16,}"),
    re.compile(r"\b((?:sk|conch)[-_])[\w-]{8,}"),
    re.compile(r"(?i)(\bbearer\s+)[^\s\"',;]{6,}"),
    re.compile(
        r"(?i)((?:api[_-]?key|authorization|password|secret|access_token|refresh_token|id_token)[\"']?\s*[:=]\s*[\"']?)"
        r"(?!bearer\b)[^\s\"',;}]{6,}"
    ),
    re.compile(r"(\beyJ)[\w-]{8,}\.[\w-]+\.[\w-]*"),
)


class Scrubbed(logging.Formatter):
    """Formats as usual, then takes secrets out, of the traceback too."""

    def format(self, record: logging.LogRecord) -> str:
        """The line as it may be written down."""
        return scrubbed(super().format(record))


def scrubbed(text: str) -> str:
    """The text with an ellipsis where a secret stood."""
    for secret in SECRETS:
        text = secret.sub(r"\1…", text)
    return text
