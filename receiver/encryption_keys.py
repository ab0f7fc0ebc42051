"""Reads `encryption_keys` under [receiver]: references to 32 random bytes each, in base64 or hex.

A receiver needs all of them, or it would store in the clear what was to be sealed. Workers and commands do with
those that are there: what they can't open they leave alone.
"""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path

from receiver.sealing import KEY_BYTES, Keyring

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_URL_SAFE = str.maketrans("-_", "+/")
_FEWEST_BYTES = 8
"""Different bytes in a key: 32 random ones have about 30, a placeholder one or two."""
_EXPECTED = "expected 32 random bytes in base64 or hex, as `hookonce keys generate` makes them"


def read_keyring(
    references: Sequence[str], environ: Mapping[str, str], mistakes: list[str], *, need_all: bool
) -> Keyring:
    """Make the keyring from `env:NAME` and `file:/path` references, adding to `mistakes`; no key ever shows."""
    keys: list[bytes | None] = []
    for place, reference in enumerate(references, 1):
        try:
            found = _look_up(reference, environ)
            keys.append(None if found is None else _key(found))
        except ValueError as error:
            mistakes.append(f"encryption_keys: entry {place} {error}")
            continue
        is_optional = reference.endswith("?") and place > 1
        if need_all and found is None and not is_optional:
            mistakes.append(
                f"encryption_keys: entry {place} is missing; set {reference.partition(':')[2].removesuffix('?')}"
            )
    return Keyring(keys)


def _look_up(reference: str, environ: Mapping[str, str]) -> str | None:
    kind, _, rest = reference.removesuffix("?").partition(":")
    if kind == "env" and rest:
        return environ.get(rest, "").strip() or None
    if kind == "file" and rest:
        try:
            return Path(rest).read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"({rest}) can't be read: {type(error).__name__}; {_EXPECTED}") from None
    raise ValueError("is no reference; expected env:NAME or file:/path, so that no key stands in the file")


def _key(text: str) -> bytes:
    if _HEX.fullmatch(text):
        key = bytes.fromhex(text)
    else:
        plain = text.translate(_URL_SAFE).rstrip("=")
        try:
            key = b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except ValueError:
            raise ValueError(f"is no key; {_EXPECTED}") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"has {len(key)} bytes; {_EXPECTED}")
    if len(set(key)) < _FEWEST_BYTES:
        raise ValueError(f"is not random; {_EXPECTED}")
    return key
