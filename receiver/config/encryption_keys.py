"""Reads `encryption_keys` under [receiver]: references to 32 random bytes each, in base64 or hex.

A receiver needs all of them, or it would store in the clear what was to be sealed. Workers and commands do with
those that are there: what they can't open they leave alone.
"""

import os
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.secret_references import Reference, Unreadable
from hookonce.receiver.config.servers import path_of, read_toml
from hookonce.receiver.encryption import KEY_BYTES, Keyring

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_URL_SAFE = str.maketrans("-_", "+/")
_MIN_DIFFERENT_BYTES = 8
"""Different bytes in a key: 32 random ones have about 30, a placeholder one or two."""
_NOT_A_REFERENCE = "is not a reference; expected env:NAME or file:/path, so that no key stands in the file"
_EXPECTED = "expected 32 random bytes in base64 or hex, as `hookonce keys generate` makes them"


def read_keyring(
    references: Sequence[str], environ: Mapping[str, str], mistakes: list[str], *, need_all: bool
) -> Keyring:
    """Return the keys of `env:NAME` and `file:/path` references, adding to `mistakes`; no key ever shows."""
    keys: list[bytes | None] = []
    for number, text in enumerate(references, 1):
        reference, found = Reference.parse(text), None
        if reference is None:
            mistakes.append(f"encryption_keys: entry {number} {_NOT_A_REFERENCE}")
            continue
        try:
            found = reference.look_up(environ)
            keys.append(_key(found) if found else None)
        except Unreadable as error:
            mistakes.append(f"encryption_keys: entry {number} ({reference.place}) {error}; {_EXPECTED}")
        except ValueError as error:
            mistakes.append(f"encryption_keys: entry {number} {error}")
        else:
            if need_all and not found and not (reference.may_be_absent and number > 1):
                mistakes.append(f"encryption_keys: entry {number} is missing; set {reference.place}")
    return Keyring(keys)


def configured_keyring(environ: Mapping[str, str] | None = None) -> Keyring:
    """Return the keys that `load_settings` would, all of which must be there. Raises `ConfigError`.

    What else is wrong with the configuration is not looked for.
    """
    environ = os.environ if environ is None else environ
    table = read_toml(environ).get("receiver")
    named = table.get("encryption_keys", []) if isinstance(table, dict) else []
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise ConfigError([f"{path_of(environ)}: [receiver] encryption_keys: expected a list of texts"])
    mistakes: list[str] = []
    keyring = read_keyring(named, environ, mistakes, need_all=True)
    if mistakes:
        raise ConfigError(mistakes)
    return keyring


def _key(text: str) -> bytes:
    if _HEX.fullmatch(text):
        key = bytes.fromhex(text)
    else:
        plain = text.translate(_URL_SAFE).rstrip("=")
        try:
            key = b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except ValueError:
            raise ValueError(f"is not a key; {_EXPECTED}") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"has {len(key)} bytes; {_EXPECTED}")
    if len(set(key)) < _MIN_DIFFERENT_BYTES:
        raise ValueError(f"is not random; {_EXPECTED}")
    return key
