"""Masks credentials in headers and in the URL of a captured request, whose file may be committed.

A signature is not a credential, and without it a delivery is of no use to a test, so it stays; so does a signed token
that names the hash of this very body. What is masked becomes `[secret]`, or `[signed token]` if it was one; the name of
the scheme in `Authorization` stays too, so that a test can put a secret back.
"""

import re
from base64 import b64decode
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import unquote

from hookonce.providers.kit.http_file import MASK, TOKEN_MASK, Captured
from hookonce.receiver.cli.capture.shapes import SIGNED, is_bound, token_in

_CREDENTIAL: Final = re.compile(r"authorization|cookie|token|secret|passw|api-?key|(?<![a-z])key(?![a-z])")
_HARMLESS: Final = re.compile(r"idempotency|signature")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*) +(\S.*)")
_QUERY: Final = re.compile(r"(?<=[?&])([^=&]*)=([^&]*)")
_PATH_SECRET: Final = re.compile(r"(/hooks/[^/?]+/)[^?]+")


class Masker:
    """Masks credentials by their names, and the secrets of the source, if it has any, wherever they stand."""

    def __init__(self, secrets: Iterable[str] = (), keep: Iterable[str] = ()) -> None:
        self._secrets = [secret for secret in secrets if secret]
        self._keep = {name.lower() for name in keep}

    def masked(self, request: Captured) -> tuple[Captured, list[str]]:
        """Return the request with its credentials masked, and the names of what was."""
        headers = [(name, self._header(name, value, request.body)) for name, value in request.headers]
        target = self._target(request.target)
        changed = [name for (name, now), (_, was) in zip(headers, request.headers, strict=True) if now != was]
        changed += ["the URL"] if target != request.target else []
        return replace(request, target=target, headers=headers), changed

    def _header(self, name: str, value: str, body: bytes) -> str:
        lower = name.lower()
        is_secret = self._holds_secret(value)
        is_signature = is_bound(value, body) or (lower.endswith("authorization") and SIGNED.search(value))
        if lower in self._keep or (is_signature and not is_secret):
            return value
        if is_secret or (_CREDENTIAL.search(lower) and not _HARMLESS.search(lower)):
            scheme = _SCHEME.fullmatch(value) if lower.endswith("authorization") else None
            mask = TOKEN_MASK if token_in(scheme[2] if scheme else value) else MASK
            return f"{scheme[1]} {mask}" if scheme else mask
        return value

    def _target(self, target: str) -> str:
        target = _PATH_SECRET.sub(rf"\g<1>{MASK}", target)
        return _QUERY.sub(lambda found: f"{found[1]}={self._parameter(found[1].lower(), found[2])}", target)

    def _parameter(self, name: str, value: str) -> str:
        if name in self._keep or not value:
            return value
        hidden = self._holds_secret(unquote(value)) or (
            _CREDENTIAL.search(name) and not _HARMLESS.search(name)
        )
        return MASK if hidden else value

    def _holds_secret(self, value: str) -> bool:
        scheme, _, rest = value.partition(" ")
        texts = [value]
        if scheme.lower() == "basic":
            with suppress(ValueError):
                texts.append(b64decode(rest).decode("utf-8", "replace"))
        return any(secret in text for secret in self._secrets for text in texts)
