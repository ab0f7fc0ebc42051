"""Multipart forms, their text fields and no files: the boundary is what the body begins with.

Anybody may send one to a sender whose signature is a field of it. So a form is searched and not split, its texts
are copied and its files are not, and what is longer than in any sender's is refused.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hookonce.providers import Reason, Rejected
from hookonce.providers.kit.reading.bodies import text_of

BOUNDARY = "hookonce-boundary"
_MAX_BOUNDARY_BYTES: Final = 72
"""Two hyphens and 70 characters (RFC 2046)."""
_MAX_PARTS: Final = 1000
_MAX_HEAD_BYTES: Final = 8192
"""Of the headers of one part, which name a field, a file and a type."""
_MAX_HEADS_BYTES: Final = 512 * 1024
"""Of the headers of all parts."""
_MAX_PARAMETERS: Final = 16
"""As many parameters as are looked at in a part's disposition; a name and two spellings of a file are usual."""
_MAX_TEXT_BYTES: Final = 5 << 20
"""Of the texts of all fields: a mail of some length is in them twice, as HTML and stripped."""


def is_multipart(body: bytes) -> bool:
    """Whether a body begins as multipart forms do; no JSON does, and no form that we know."""
    return body.startswith(b"--")


def part_of(body: bytes, name: str) -> str:
    """Return the text of the field `name` of a multipart form. Raises: Rejected(bad_body, too_large)."""
    for found, _, start, end in _parts(body):
        if found == name:
            return text_of(body[start:end])
    raise Rejected(Reason.BAD_BODY, f"the multipart form has no field {name!r}")


def parts_in(body: bytes, beginning: Mapping[str, int] = {}) -> dict[str, str]:
    """Return the texts of all fields of a multipart form, files left out; what is not UTF-8 in them is replaced.

    beginning: fields of which only so many bytes are read

    Raises: Rejected(too_large) for more parts, longer heads or longer texts than any sender's.
    """
    texts = [
        (name, start, min(end, start + beginning.get(name, end)))
        for name, is_file, start, end in _parts(body)
        if not is_file
    ]
    if sum(end - start for _, start, end in texts) > _MAX_TEXT_BYTES:
        raise Rejected(Reason.TOO_LARGE, f"the texts of the form have more than {_MAX_TEXT_BYTES} bytes")
    return {name: body[start:end].decode(errors="replace") for name, start, end in texts}


def rewritten(body: bytes, change: Callable[[str, bytes], bytes]) -> bytes:
    """Return a multipart form with what `change` makes of each field, by its name; files stay as they are.

    Raises: Rejected(too_large).
    """
    made, at = b"", 0
    for name, is_file, start, end in _parts(body):
        if not is_file:
            made, at = made + body[at:start] + change(name, body[start:end]), end
    return made + body[at:]


def _parts(body: bytes) -> Iterator[tuple[str, bool, int, int]]:
    """Return every field with a name: that, whether it is a file, where its bytes begin and end.

    What is not a multipart form has none. Raises: Rejected(too_large).
    """
    line = body.find(b"\r\n", 0, _MAX_BOUNDARY_BYTES + 2)
    if not is_multipart(body) or line < 0:
        return
    between = b"\r\n" + body[:line]
    at, heads = line, 0
    for _ in range(_MAX_PARTS):
        after = body.find(between, at)
        end = len(body) if after < 0 else after
        blank = body.find(b"\r\n\r\n", at, min(end, at + _MAX_HEAD_BYTES))
        heads += max(blank - at, 0)
        if heads > _MAX_HEADS_BYTES or (blank < 0 and end - at > _MAX_HEAD_BYTES):
            raise Rejected(Reason.TOO_LARGE, "the parts of the form have longer headers than any sender's")
        items = _disposition(body[at : max(blank, at)].decode("latin-1"))
        name = next((item[6:-1] for item in items if item.startswith('name="') and item.endswith('"')), None)
        if name is not None:
            yield name, any(item.startswith("filename") for item in items), blank + 4, end
        if after < 0:
            return
        at = after + len(between)
    raise Rejected(Reason.TOO_LARGE, f"the form has more than {_MAX_PARTS} parts")


def _disposition(head: str) -> list[str]:
    lines = (line for line in head.split("\r\n") if line.lower().startswith("content-disposition:"))
    return [item.strip() for item in next(lines, "").split(";", _MAX_PARAMETERS)]


def one_field(name: str, text: bytes) -> tuple[str, bytes]:
    """Return a multipart form of one field: its content type, and the body."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
    return f"multipart/form-data; boundary={BOUNDARY}", head + text + f"\r\n--{BOUNDARY}--\r\n".encode()
