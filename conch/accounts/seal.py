"""Secrets at rest: sealed with keys that come of CONCH_SECRET_KEY, and known again by a fingerprint.

Rotation: put the old secret into CONCH_OLD_SECRET_KEYS; what it sealed can still be opened, what is sealed from then on
is under the new one.
"""

import hmac
from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import sha256

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class CantUnseal(Exception):
    """The secret was sealed under a CONCH_SECRET_KEY that isn't here any more."""

    def __init__(self) -> None:
        super().__init__(
            "This key was sealed under another CONCH_SECRET_KEY. "
            "Put that one into CONCH_OLD_SECRET_KEYS, or connect the account again."
        )


def seal(secret: str) -> str:
    """The secret as it may be written down; nothing stays nothing."""
    return _box().encrypt(secret.encode()).decode() if secret else ""


def unseal(sealed: str) -> str:
    """The secret again. Raises CantUnseal where it was sealed under a key that is gone."""
    if not sealed:
        return ""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise CantUnseal from error


def fingerprint(secret: str) -> str:
    """By this the same key is known again (R1), under the present CONCH_SECRET_KEY; it tells nothing of the key."""
    return _fingerprint(settings.SECRET_KEY, secret)


def fingerprints(secret: str) -> list[str]:
    """The fingerprint under the present and every old CONCH_SECRET_KEY: a key connected before a rotation is known."""
    return [_fingerprint(key, secret) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


def _fingerprint(under: str, secret: str) -> str:
    return hmac.new(_derived(under, b"conch fingerprint"), secret.encode(), sha256).hexdigest()


def _box() -> MultiFernet:
    return _box_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(4)
def _box_of(secret_keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(urlsafe_b64encode(_derived(key, b"conch seal"))) for key in secret_keys])


@lru_cache(16)
def _derived(secret_key: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret_key.encode())
