"""Secrets at rest."""

import pytest

from conch.accounts import seal

OLD, NEW = "o" * 50, "n" * 50


def test_a_secret_comes_back_and_looks_different_each_time(settings):
    settings.SECRET_KEY = NEW

    one, two = seal.seal("sk-made-up"), seal.seal("sk-made-up")

    assert one != two
    assert "sk-made-up" not in one
    assert seal.unseal(one) == seal.unseal(two) == "sk-made-up"
    assert seal.seal("") == seal.unseal("") == ""


def test_a_rotated_secret_key_still_opens_what_the_old_one_sealed(settings):
    settings.SECRET_KEY = OLD
    sealed, known = seal.seal("sk-made-up"), seal.fingerprint("sk-made-up")

    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    assert seal.unseal(sealed) == "sk-made-up"
    assert known in seal.fingerprints("sk-made-up")

    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(seal.CantUnseal, match="CONCH_OLD_SECRET_KEYS"):
        seal.unseal(sealed)


def test_a_fingerprint_tells_keys_apart_and_nothing_else(settings):
    settings.SECRET_KEY = NEW

    assert seal.fingerprint("sk-a") == seal.fingerprint("sk-a")
    assert seal.fingerprint("sk-a") != seal.fingerprint("sk-b")
    assert "sk-a" not in seal.fingerprint("sk-a")
