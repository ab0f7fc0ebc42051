"""Multipart forms, their text fields and no files: the boundary is what the body begins with."""

from collections.abc import Iterator

from providers import Reason, Rejected
from providers.kit.reading import text_of

BOUNDARY = "hookonce-boundary"
_MOST = 1000


def is_multipart(body: bytes) -> bool:
    """Say whether a body begins as multipart forms do; no JSON does, and no form that we know."""
    return body.startswith(b"--")


def part_of(body: bytes, name: str) -> str:
    """The text of the field `name` of a multipart form. Raises: Rejected(bad_body)."""
    for found, _, content in _parts(body):
        if found == name:
            return text_of(content)
    raise Rejected(Reason.BAD_BODY, f"the multipart form has no field {name!r}")


def parts_in(body: bytes) -> dict[str, str]:
    """The texts of all fields of a multipart form, files left out; what is no UTF-8 in them is replaced."""
    return {name: content.decode(errors="replace") for name, is_file, content in _parts(body) if not is_file}


def _parts(body: bytes) -> Iterator[tuple[str, bool, bytes]]:
    """Every field with a name: that, whether it is a file, its bytes; what is no multipart form has none."""
    boundary, _, _ = body.partition(b"\r\n")
    if not is_multipart(body):
        return
    for part in (b"\r\n" + body).split(b"\r\n" + boundary, _MOST)[1:]:
        head, blank, content = part.partition(b"\r\n\r\n")
        items = _disposition(head.decode("latin-1"))
        name = next((item[6:-1] for item in items if item.startswith('name="') and item.endswith('"')), None)
        if blank and name is not None:
            yield name, any(item.startswith("filename") for item in items), content


def _disposition(head: str) -> list[str]:
    lines = [line for line in head.split("\r\n") if line.lower().startswith("content-disposition:")]
    return [item.strip() for line in lines for item in line.split(";")]


def multipart(name: str, text: bytes) -> tuple[str, bytes]:
    """A multipart form of one field: its content type, and the body."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
    return f"multipart/form-data; boundary={BOUNDARY}", head + text + f"\r\n--{BOUNDARY}--\r\n".encode()
