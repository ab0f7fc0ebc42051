"""The request as every framework tells it, and the tasks of an adapter."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from hookonce.receiver.endpoints.policy import HEADER
from hookonce.receiver.idempotency.records import Result

FORMS = frozenset({"multipart/form-data", "application/x-www-form-urlencoded"})
"""Media types whose bodies a framework reads as fields and files."""

_CHUNK = 64 * 1024
"""Bytes of a file that are read at once."""


class BodyNotWhole(RuntimeError):  # noqa: N818  what the application did
    """The body was read before, in part or as a whole, and can't be read again: two requests can't be told apart."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the body of this request can't be compared with that of its twins: {why}. Read it by the framework's "
            "request, so that it is kept (Flask: request.get_data() or request.form; Django: request.body or "
            "request.POST; FastAPI: await request.body() in the middleware), or let the endpoint read it first"
        )


class Headers(Protocol):
    """The headers of a request, whatever the case of their names."""

    def get(self, name: str, /) -> str | None:
        """Return a header."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as every framework tells it."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes

    @property
    def key(self) -> str | None:
        """The header Idempotency-Key, as it was sent; sent twice, joined as WSGI joins it."""
        every = getattr(self.headers, "getlist", None)
        sent = self.headers.get(HEADER)
        return sent if sent is None or every is None else ",".join(every(HEADER))


class Framework(Protocol):
    """The tasks of an adapter."""

    def asked(self, request: Any, /) -> Asked:  # noqa: ANN401  the framework's
        """Read a request; its body only where there is a key. Raises: `BodyNotWhole`."""
        ...

    def read(self, answer: Any, /) -> tuple[Any, Result]:  # noqa: ANN401  the framework's
        """Return the response that a view's answer is, and what there is to store of it."""
        ...

    def response(self, result: Result, /) -> Any:  # noqa: ANN401  the framework's
        """Make a response."""
        ...

    def status_of(self, error: Exception, /) -> int | None:
        """Return the status that the framework answers an exception with, if it is one that has a status."""
        ...


def whole(body: bytes, headers: Headers) -> bytes:
    """Return a body that is as long as the client said. Raises: `BodyNotWhole`.

    A middleware that decompresses a body may leave its length as it was.
    """
    length = (headers.get("Content-Length") or "").strip()
    declared = int(length) if length.isascii() and length.isdigit() else None
    is_short = len(body) < declared if declared is not None else False
    if not body and (declared or headers.get("Transfer-Encoding")):
        raise BodyNotWhole("nothing of it is left")
    if is_short and not headers.get("Content-Encoding"):
        raise BodyNotWhole(f"{len(body)} of {declared} bytes are left")
    return body


def is_empty_form(headers: Headers, boundary: str) -> bool:
    """Whether a form with files is too short for a field: nothing but its last boundary."""
    length = (headers.get("Content-Length") or "").strip()
    return bool(boundary) and length.isdigit() and int(length) <= len(f"\r\n--{boundary}--\r\n")


def spelled(
    fields: Iterable[tuple[str, Sequence[str]]],
    files: Iterable[tuple[str, Sequence[tuple[str | None, str | None, IO[bytes]]]]],
) -> bytes:
    """Spell a form that was read: its fields, and its files (name, media type, content). Raises: `BodyNotWhole`."""
    document = [
        sorted((name, list(values)) for name, values in fields),
        sorted(
            (name, [[file or "", kind or "", digest_of(content)] for file, kind, content in each])
            for name, each in files
        ),
    ]
    return b"form " + json.dumps(document).encode()


def digest_of(file: IO[bytes]) -> str:
    """Return the SHA-256 of a whole file, and leave it where it was. Raises: `BodyNotWhole`."""
    try:
        place = file.tell()
        file.seek(0)
        digest = hashlib.sha256()
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        file.seek(place)
    except (OSError, ValueError, AttributeError) as error:
        raise BodyNotWhole("a file of it can't be read again") from error
    return digest.hexdigest()
