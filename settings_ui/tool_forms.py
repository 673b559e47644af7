"""The forms of tool servers: a program or an address, with what only the server is to know. Secrets are never shown."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms

from conch.accounts.addresses import is_inside
from conch.tools import servers
from conch.tools.listing import plain
from conch.tools.servers import Kind, Wish
from conch.tools.signing_in import Client
from settings_ui.forms import ConchForm

LINES = 50
LONGEST = 20_000  # characters of all lines

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = {"accept", "accept-encoding", "connection", "content-length", "content-type", "cookie", "host", "origin"} | {
    *("mcp-session-id", "mcp-protocol-version", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade")
}


def _lines(label: str, placeholder: str, help_text: str) -> forms.CharField:
    """Names with values, one a line: sent once, never put back into the form."""
    attrs = {"rows": 3, "autocomplete": "off", "spellcheck": "false", "dir": "ltr", "placeholder": placeholder}
    return forms.CharField(
        label=label,
        required=False,
        max_length=LONGEST,
        help_text=help_text,
        widget=SecretLines(attrs=attrs),
        error_messages={"max_length": f"At most {LONGEST:,} characters."},
    )


class SecretLines(forms.Textarea):
    """A box whose text isn't put back."""

    def format_value(self, value: Any) -> str | None:  # noqa: ARG002  whatever it was
        """Nothing."""
        return None


def variables() -> forms.CharField:
    """A program's environment."""
    return _lines("Environment", "API_KEY=…", "One NAME=value a line. Kept sealed, and never shown again.")


def headers() -> forms.CharField:
    """The headers of every request to an address."""
    return _lines("Headers", "Authorization: Bearer …", "One Name: value a line. Kept sealed, and never shown again.")


def read_lines(text: str, kind: Kind) -> dict[str, str]:
    """Names with their values. Raises ValidationError, which never quotes a value."""
    mark, known = ("=", _VARIABLE) if kind is Kind.STDIO else (":", _HEADER)
    found: dict[str, str] = {}
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > LINES:
        raise forms.ValidationError(f"At most {LINES} lines.")
    for number, line in lines:
        name, parted, value = (part.strip() for part in line.partition(mark))
        if not parted or not known.fullmatch(name):
            like = "NAME=value" if kind is Kind.STDIO else "Name: value"
            raise forms.ValidationError(f"Line {number} isn’t like {like}.")
        if kind is Kind.HTTP and name.lower() in _OURS:
            raise forms.ValidationError(f"Line {number}: that header is Conch’s own to send.")
        if not value.isprintable() or (kind is Kind.HTTP and not value.isascii()):
            raise forms.ValidationError(f"Line {number} has characters that can’t be sent.")
        found[name] = value
    return found


class NameForm(ConchForm):
    """What people call a server."""

    name = forms.CharField(label="Name", max_length=100, error_messages={"required": "Give it a name."})

    def clean_name(self) -> str:
        """On one line."""
        name = plain(str(self.cleaned_data["name"]), 100)
        if not name:
            raise forms.ValidationError("Give it a name.")
        return name


class SecretsForm(ConchForm):
    """Another environment, or other headers, in place of all that a server was told."""

    def __init__(self, *args: Any, kind: Kind, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.fields["secrets"] = variables() if kind is Kind.STDIO else headers()
        self.fields["secrets"].widget.attrs["class"] = "input"

    def clean_secrets(self) -> dict[str, str]:
        """Names with their values."""
        return read_lines(str(self.cleaned_data["secrets"]), self.kind)


class ClientForm(ConchForm):
    """What the person was given where they registered Conch by hand."""

    client_id = forms.CharField(
        label="Client ID",
        max_length=500,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "dir": "ltr"}),
        error_messages={"required": "Write the client ID that you were given."},
    )
    secret = forms.CharField(
        label="Client secret",
        required=False,
        max_length=2000,
        help_text="If you were given one. Kept sealed, and never shown again.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "dir": "ltr"}),
    )

    def clean(self) -> dict[str, Any]:
        """Both can be sent as they are."""
        cleaned: dict[str, Any] = super().clean() or {}
        for name in ("client_id", "secret"):
            value = str(cleaned.get(name) or "")
            if not value.isascii() or not value.isprintable():
                self.add_error(name, "It has characters that can’t be sent.")
        return cleaned

    def client(self) -> Client:
        """What the person wrote."""
        return Client(self.cleaned_data["client_id"], self.cleaned_data["secret"])


class ProgramForm(NameForm):
    """A program that Conch starts on this computer."""

    command = forms.CharField(
        label="Command",
        max_length=4000,
        help_text="The program and its words, as in a terminal, but without a shell. Keys belong below: what stands "
        "here can be seen by others on this computer.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "dir": "ltr"}),
        error_messages={"required": "Write the program and its words."},
    )
    secrets = variables()
    field_order = ("name", "command", "secrets")

    def __init__(self, *args: Any, owner: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner
        self.fields["command"].widget.attrs["placeholder"] = "uvx mcp-server-time"

    def clean_command(self) -> tuple[str, ...]:
        """Its words."""
        try:
            return servers.words_of(str(self.cleaned_data["command"]))
        except servers.CantConnect as error:
            raise forms.ValidationError(str(error)) from error

    def clean_secrets(self) -> dict[str, str]:
        """Names with their values."""
        return read_lines(str(self.cleaned_data["secrets"]), Kind.STDIO)

    def wish(self) -> Wish:
        """What the person said."""
        given: Mapping[str, Any] = self.cleaned_data
        return Wish(given["name"], Kind.STDIO, command=given["command"], secrets=given["secrets"])


class AddressForm(NameForm):
    """A server that is called at an address."""

    url = forms.CharField(
        label="Address",
        max_length=500,
        help_text="Of a server that speaks MCP over HTTP.",
        widget=forms.URLInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Write the server’s address."},
    )
    secrets = headers()
    inside = forms.BooleanField(
        label="Yes, call that address on this computer or its network", required=False, widget=forms.HiddenInput
    )
    field_order = ("name", "url", "inside", "secrets")

    def __init__(self, *args: Any, owner: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner
        self.fields["url"].widget.attrs["placeholder"] = "https://notes.example/mcp"

    def clean_secrets(self) -> dict[str, str]:
        """Names with their values."""
        return read_lines(str(self.cleaned_data["secrets"]), Kind.HTTP)

    def clean(self) -> dict[str, Any]:
        """An address on this computer or its network is asked for once more; others may not name one."""
        cleaned: dict[str, Any] = super().clean() or {}
        url = str(cleaned.get("url") or "")
        if self.owner and url.startswith(("http://", "https://")) and _inside(url):
            self.fields["inside"].widget = forms.CheckboxInput()
            if not cleaned.get("inside"):
                said = "That address is on this computer or its network. Tick this"
                more = ", and write the headers again." if cleaned.get("secrets") else "."
                self.add_error("inside", said + more)
        return cleaned

    def wish(self) -> Wish:
        """What the person said."""
        given: Mapping[str, Any] = self.cleaned_data
        return Wish(given["name"], Kind.HTTP, url=given["url"].strip(), secrets=given["secrets"])


def _inside(url: str) -> bool:
    try:
        return is_inside(url)
    except ValueError:
        return False  # what can't be read is refused by whoever checks it
