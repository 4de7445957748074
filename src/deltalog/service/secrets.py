"""Secrets that sign webhooks: `whsec_` and base64, as Standard Webhooks has them."""

from __future__ import annotations

import base64
import binascii

PREFIX = "whsec_"
BYTES_MIN, BYTES_MAX = 24, 64
SECRETS_MAX = 5


def secrets_of(text: str) -> tuple[bytes, ...] | None:
    """The secrets in a text, with spaces between; None if there is none, or one is not valid.

    While a secret is replaced there are two: both sign, and receivers accept either.
    """
    found = []
    for word in text.split()[: SECRETS_MAX + 1]:
        try:
            secret = base64.b64decode(word.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            return None
        if not BYTES_MIN <= len(secret) <= BYTES_MAX:
            return None
        found.append(secret)
    return tuple(found) if 0 < len(found) <= SECRETS_MAX else None
