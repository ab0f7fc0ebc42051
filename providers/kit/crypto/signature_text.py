"""Signatures as text: hex, base64, base64url.

A given signature is compared as text with the one spelling that we compute, after folding the case of hex and
cutting base64's padding; it is never decoded. So spellings that lenient decoders take for the same bytes
(spaces in hex, stray bits in base64's last character, another alphabet) do not match anything, and "sha256="
with nothing behind it is malformed, not empty. An attacker who can spell a right signature in two ways gains nothing by
it: nothing is remembered by signature.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Encoding = Literal["hex", "base64", "base64url"]
ENCODINGS: Final[tuple[Encoding, ...]] = ("hex", "base64", "base64url")


@dataclass(frozen=True, slots=True)
class Speller:
    """How a signature of a certain size is written: `spell` bytes, `fold` what was sent to that spelling."""

    spell: Callable[[bytes], str]
    form: re.Pattern[str]
    ignore_case: bool

    def fold(self, text: str) -> bytes | None:
        """Return the comparable spelling of what a sender sent, None if it can't be a signature of this size."""
        if self.form.fullmatch(text) is None:
            return None
        return (text.lower() if self.ignore_case else text.rstrip("=")).encode("ascii")

    def folded(self, signature: bytes) -> bytes:
        """Return the comparable spelling of a signature that we computed."""
        return self.spell(signature).rstrip("=").encode("ascii")


def speller(encoding: Encoding, size: int) -> Speller:
    """Return the speller for signatures of `size` bytes. Raises: ValueError for an unknown encoding."""
    characters = -(-size * 4 // 3)
    padding = f"={{0,{-size % 3}}}"
    if encoding == "hex":
        return Speller(bytes.hex, re.compile(f"[0-9a-fA-F]{{{2 * size}}}"), ignore_case=True)
    if encoding == "base64":
        form = re.compile(f"[A-Za-z0-9+/]{{{characters}}}{padding}")
        return Speller(lambda raw: b64encode(raw).decode(), form, ignore_case=False)
    if encoding == "base64url":
        form = re.compile(f"[A-Za-z0-9_-]{{{characters}}}{padding}")
        return Speller(lambda raw: urlsafe_b64encode(raw).decode().rstrip("="), form, ignore_case=False)
    msg = f"{encoding!r} is not an encoding of signatures; expected one of {', '.join(ENCODINGS)}"
    raise ValueError(msg)
