"""One field of a multipart form, without files: the boundary is what the body begins with."""

from providers import Reason, Rejected
from providers.kit.reading import text_of

BOUNDARY = "hookonce-boundary"


def part_of(body: bytes, name: str) -> str:
    """The text of the field `name` of a multipart form. Raises: Rejected(bad_body)."""
    boundary, _, _ = body.partition(b"\r\n")
    wanted = f'name="{name}"'
    if boundary.startswith(b"--"):
        for part in body.split(boundary)[1:]:
            head, blank, content = part.partition(b"\r\n\r\n")
            if blank and _has(head.decode("latin-1"), wanted):
                return text_of(content.removesuffix(b"\r\n"))
    raise Rejected(Reason.BAD_BODY, f"the multipart form has no field {name!r}")


def _has(head: str, wanted: str) -> bool:
    lines = [line for line in head.split("\r\n") if line.lower().startswith("content-disposition:")]
    return any(wanted == item.strip() for line in lines for item in line.split(";"))


def multipart(name: str, text: bytes) -> tuple[str, bytes]:
    """A multipart form of one field: its content type, and the body."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
    return f"multipart/form-data; boundary={BOUNDARY}", head + text + f"\r\n--{BOUNDARY}--\r\n".encode()
