"""The address at which an account's engine is reached: what it may be, and who may point it inside (SEC-04)."""

import ipaddress
from urllib.parse import urlsplit

LONGEST = 500


class BadAddress(ValueError):
    """The base URL can't be used; says why."""


async def checked(base_url: str, *, owner: bool, what: str = "base URL") -> str:
    """The base URL without a slash at its end. Raises BadAddress; `what` is what the page calls it.

    Only the owner of the machine may name an address that isn't on the internet. Redirects are never followed, and for
    anyone else every connection is checked again, since a name may resolve to something else by then.
    """
    base_url = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadAddress(f"The {what} can’t be read: it is like https://api.example/v1.") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise BadAddress(f"The {what} must begin with http:// or https:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise BadAddress(f"The {what} can’t hold a user or a password.")
    if parts.query or parts.fragment or len(base_url) > LONGEST or not base_url.isprintable() or " " in base_url:
        raise BadAddress(f"The {what} has a host and a path, without ? or #.")
    if not owner and not await _is_outside(host, port or (443 if parts.scheme == "https" else 80)):
        # The same words whatever is there: an answer from inside tells a guest nothing.
        raise BadAddress(f"This {what} isn’t an address on the internet. Only the owner may use others.")
    return base_url


async def _is_outside(host: str, port: int) -> bool:
    from conch.engines.wire_transport import is_public, public_address

    try:
        return is_public(str(ipaddress.ip_address(host)))
    except ValueError:
        return await public_address(host, port) is not None


def is_inside(base_url: str) -> bool:
    """Whether the address is plainly at this machine or its network: the page asks the owner once more."""
    from conch.engines.wire_transport import is_public

    host = urlsplit(base_url).hostname or ""
    try:
        return not is_public(str(ipaddress.ip_address(host)))
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal")) or "." not in host
