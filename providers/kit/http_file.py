r"""One HTTP request as a `.http` file: what `hookonce capture` writes, and a test case beside a few facts.

    POST /hooks/acme HTTP/1.1
    host: in.example
    x-acme-signature: 5f0c…
    authorization: Bearer [secret]
    hookonce-captured-at: 2026-01-01T00:00:00Z

    {"id": "evt_1"}

The lines up to the first blank one may end in `\n` or `\r\n`; behind it every byte is the body's. `[secret]`
stands for a credential that was masked, and is replaced by the secret of the facts. The last header is ours: when
it came, which is the clock of the test unless the facts have `verify_at`.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from hookonce.providers.kit.signing.timestamps import instant

MASK: Final = "[secret]"
TOKEN_MASK: Final = "[signed token]"  # noqa: S105  what stands for one
"""A signed token is written so: one that is new with each delivery can't be put back."""
CAPTURED_AT: Final = "hookonce-captured-at"

_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_REQUEST: Final = re.compile(r"([A-Z]{1,20}) (\S+)(?: HTTP/[0-9.]+)?")
_HEADER: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")


@dataclass(frozen=True, slots=True)
class Captured:
    """A request as it came: `target` is its path and query, header names are in their own case, in order."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    at: datetime | None = None

    @property
    def url(self) -> str:
        """The URL it was sent to, as the sender knows it: https, unless it was this machine itself."""
        if "://" in self.target:
            return self.target
        said = self.lowered()
        host = said.get("host", "")
        local = host.rpartition(":")[0] in {"127.0.0.1", "localhost", "[::1]"}
        scheme = said.get("x-forwarded-proto", "http" if local else "https")
        return f"{scheme}://{host}{self.target}" if host else self.target

    def addressed(self, secret: str) -> tuple[str, str]:
        """Return the URL as a provider gets it, `secret` in the place of what was masked, and what ended its path."""
        base, mark, query = self.url.partition("?")
        path, _, last = base.rpartition("/")
        url = (path if last == MASK else base) + mark + query.replace(MASK, quote(secret, safe=""))
        return url, secret if last == MASK else ""

    def lowered(self, secret: str = "") -> Mapping[str, str]:
        """Return the headers as a provider gets them, with `secret` in the place of what was masked."""
        merged: dict[str, str] = {}
        for name, text in self.headers:
            key, value = name.lower(), _unmasked(text, secret) if secret else text
            merged[key] = f"{merged[key]},{value}" if key in merged else value
        return merged


def written(request: Captured) -> bytes:
    """Write a request as a `.http` file; without a header of the sender's that has the name of ours."""
    lines = [f"{request.method} {request.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers if name.lower() != CAPTURED_AT]
    if request.at:
        lines.append(f"{CAPTURED_AT}: {request.at.astimezone(UTC).isoformat().replace('+00:00', 'Z')}")
    return "\n".join(lines).encode("latin-1", "replace") + b"\n\n" + request.body


def read(raw: bytes) -> Captured:
    """Read a `.http` file. Raises: ValueError naming the line that is not as it should be."""
    parts = _HEAD.split(raw, maxsplit=1)
    lines = [line.removesuffix("\r") for line in parts[0].decode("latin-1").split("\n")]
    request = _REQUEST.fullmatch(lines[0])
    if request is None:
        msg = "the first line is not a request; expected one like `POST /hooks/acme HTTP/1.1`"
        raise ValueError(msg)
    headers = [_header(number, line) for number, line in enumerate(lines[1:], 2) if line]
    said = dict(headers).get(CAPTURED_AT)
    own = [(name, value) for name, value in headers if name != CAPTURED_AT]
    return Captured(request[1], request[2], own, parts[1] if len(parts) > 1 else b"", _moment(said))


def _header(number: int, line: str) -> tuple[str, str]:
    found = _HEADER.fullmatch(line)
    if found is None:
        msg = f"line {number} is not a header; expected `name: value`, and a blank line before the body"
        raise ValueError(msg)
    return found[1], found[2]


def _moment(said: str | None) -> datetime | None:
    moment = instant(said) if said else None
    if said and moment is None:
        msg = f"{CAPTURED_AT} is {said!r}; expected a time like 2026-01-01T00:00:00Z"
        raise ValueError(msg)
    return moment


def _unmasked(value: str, secret: str) -> str:
    """Put the secret where it stood: in base64 behind `Basic`, where it is `user:password`."""
    if value.lower() == f"basic {MASK}":
        return f"{value[:5]} {b64encode(secret.encode()).decode()}"
    return value.replace(MASK, secret).replace(TOKEN_MASK, secret)
