"""Sealing small secrets for the database: AES-GCM under a key made from the studio's secret, bound to where it lies.

A sealed value opens only with the same `about` (tenant and name), so a row moved elsewhere opens nothing. The
studio's secret can be replaced: keep the old one as a fallback and seal everything again.
"""

import secrets
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_VERSION: Final = b"\x01"
_NONCE: Final = 12


class CannotOpen(ValueError):
    """A sealed value does not open: the studio's secret changed, or the value was moved or damaged."""


def seal(plain: str, *, about: str, secret: str) -> bytes:
    """`plain`, sealed under `secret`."""
    nonce = secrets.token_bytes(_NONCE)
    return _VERSION + nonce + AESGCM(_key(secret)).encrypt(nonce, plain.encode(), about.encode())


def unseal(sealed: bytes, *, about: str, accepted: Sequence[str]) -> str:
    """The plain text, opened with the first of the `accepted` secrets that fits. Raises `CannotOpen`."""
    if sealed[:1] == _VERSION:
        nonce, rest = sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :]
        for secret in accepted:
            try:
                return AESGCM(_key(secret)).decrypt(nonce, rest, about.encode()).decode()
            except InvalidTag:
                continue
    raise CannotOpen("a kept secret does not open: was OZ0_SECRET_KEY changed without OZ0_OLD_SECRET_KEYS?")


def _key(secret: str) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"oz0 vault 1").derive(secret.encode())
