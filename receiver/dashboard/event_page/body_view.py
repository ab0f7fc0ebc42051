"""Bodies as a page shows them: bounded, indented where they are JSON, and never changed otherwise.

Indenting goes by the text itself: numbers, escapes and doubled keys stand there as the sender wrote them.
"""

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

MAX_SHOWN = 100_000
"""Characters of a body on a page; the rest is in the download."""
_INDENTED = 1_000_000
_HEX_SHOWN = 1024
_HEX_LINE = 16
_IN_CURL = 50_000
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_LEFT_OUT = frozenset({"host", "content-length", "connection", "transfer-encoding", "accept-encoding"})


@dataclass(frozen=True, slots=True)
class BodyView:
    """A body as text; `pretty` where it is JSON, `cut` if not all of it is here."""

    size: int
    raw: str
    pretty: str | None
    is_text: bool
    cut: bool


def body_view(body: bytes) -> BodyView:
    """Prepare a body for a page."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return BodyView(len(body), _hex(body[:_HEX_SHOWN]), None, is_text=False, cut=len(body) > _HEX_SHOWN)
    pretty = _pretty(text) if len(text) <= _INDENTED else None
    return BodyView(
        len(body),
        text[:MAX_SHOWN],
        pretty[:MAX_SHOWN] if pretty is not None else None,
        is_text=True,
        cut=max(len(text), len(pretty or "")) > MAX_SHOWN,
    )


def curl(url: str, headers: Mapping[str, str], body: bytes) -> str:
    """Write a command that sends a delivery again; masked headers are in it as they are kept."""
    lines = [f"curl -X POST {shlex.quote(url)}"]
    lines += [
        f"  -H {shlex.quote(f'{name}: {value}')}"
        for name, value in headers.items()
        if name.lower() not in _LEFT_OUT
    ]
    if len(body) > _IN_CURL:
        return " \\\n".join([*lines, "  --data-binary @body.bin"])
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        send = " \\\n".join([*lines, "  --data-binary @-"])
        return f"base64 -d <<< {b64encode(body).decode()} | {send}"
    lines.append(f"  --data-raw {shlex.quote(text)}")  # unlike --data-binary, no @ is special
    return " \\\n".join(lines)


def _pretty(text: str) -> str | None:
    """Indent JSON, as far as it is shown: a list in many lists would grow a thousandfold. None for what is not JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    made: list[str] = []
    depth, before, length = 0, "", 0
    for match in _TOKENS.finditer(text):
        piece = match[0]
        if piece in "}]":
            depth -= 1
        if (piece in "}]" and before not in ("{", "[")) or (before in ("{", "[", ",") and piece not in "}]"):
            made.append("\n" + "  " * depth)
            length += len(made[-1])
        made.append(": " if piece == ":" else piece)
        length += len(made[-1])
        if length > MAX_SHOWN:
            break
        if piece in "{[":
            depth += 1
        before = piece
    return "".join(made)


def _hex(body: bytes) -> str:
    """Write bytes as hexadecimal numbers and, beside them, what of them is printable ASCII."""
    lines = []
    for start in range(0, len(body), _HEX_LINE):
        part = body[start : start + _HEX_LINE]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)  # noqa: PLR2004  ASCII
        lines.append(f"{start:06x}  {part.hex(' '):<{3 * _HEX_LINE - 1}}  {letters}")
    return "\n".join(lines)
