"""Bodies under a Content-Encoding: gzip and deflate, inflated within bounds.

A text of a megabyte may have a body of any size; a longer text is at most `RATIO` times as long as its body. gzip's
trailer has the length of the text, and no more is inflated. A body under `gzip` that does not begin as gzip does was
inflated by a proxy, which left the header.
"""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hookonce.providers import Delivery, Reason, Rejected

HEADER: Final = "content-encoding"
RATIO: Final = 50
"""JSON of many like elements is ten to thirty times as long as its gzip; a bomb is a thousand times as long."""
_ALWAYS: Final = 1 << 20
_PLAIN: Final = frozenset({"", "identity", "none", "utf-8", "utf8"})
"""Names that stand for no coding, or are there by mistake."""
_GZIP: Final = frozenset({"gzip", "x-gzip"})
_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW, _ZLIB_WINDOW, _RAW_WINDOW = 31, 15, -15  # what zlib calls wbits


def coding_of(headers: Mapping[str, str]) -> str:
    """Return `gzip` or `deflate`, empty for a body as it is. Raises: Rejected(unsupported_encoding)."""
    named = [each.strip().lower() for each in headers.get(HEADER, "").split(",")]
    codings = ["gzip" if each in _GZIP else each for each in named if each not in _PLAIN]
    if codings not in ([], ["gzip"], ["deflate"]):
        raise Rejected(
            Reason.UNSUPPORTED_ENCODING,
            "the body has another Content-Encoding than gzip or deflate, or several",
        )
    return "".join(codings)


def longest_text(body: bytes, coding: str, limit: int) -> int | None:
    """Return how long the text of `body` may be, None where that is `body` itself. Raises: Rejected(too_large)."""
    if not coding or not body or (coding == "gzip" and not body.startswith(_MAGIC)):
        return None
    most = min(limit, max(_ALWAYS, RATIO * len(body)))
    size = int.from_bytes(body[-4:], "little") if coding == "gzip" else most
    if size > most:
        raise Rejected(Reason.TOO_LARGE, f"the body would have {size} bytes inflated, {most} are allowed")
    return size


def decoded(delivery: Delivery, limit: int) -> Delivery:
    """Return a delivery with its text as body, `sent` being the bytes that came; itself if it is not compressed.

    Raises: Rejected(unsupported_encoding, too_large, bad_body).
    """
    coding = "" if delivery.sent is not None else coding_of(delivery.headers)
    most = longest_text(delivery.body, coding, limit)
    if most is None:
        return delivery
    return replace(delivery, body=_inflated(delivery.body, coding, most), sent=delivery.body)


def text_and_headers(body: bytes, headers: Mapping[str, str]) -> tuple[bytes, dict[str, str]]:
    """Return the text of a body that was taken in, and its headers without the coding."""
    try:
        if coding := coding_of(headers):
            most = longest_text(body, coding, max(_ALWAYS, RATIO * len(body)))
            body = body if most is None else _inflated(body, coding, most)
    except Rejected:  # such a body is not taken in: somebody else has written it
        return body, dict(headers)
    return body, without_coding(headers)


def without_coding(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that a text has."""
    return {name: value for name, value in headers.items() if name != HEADER}


def _inflated(body: bytes, coding: str, most: int) -> bytes:
    """Raises: Rejected(too_large, bad_body)."""
    is_zlib = body[0] & 15 == zlib.DEFLATED and int.from_bytes(body[:2]) % 31 == 0  # RFC 1950, 2.2
    window = _GZIP_WINDOW if coding == "gzip" else _ZLIB_WINDOW if is_zlib else _RAW_WINDOW
    inflater = zlib.decompressobj(window)
    try:
        text = inflater.decompress(body, most + 1)
    except zlib.error:
        raise Rejected(Reason.BAD_BODY, f"the body can't be inflated as {coding}") from None
    if len(text) > most:
        raise Rejected(Reason.TOO_LARGE, f"the body has more than {most} bytes inflated")
    if not inflater.eof or inflater.unused_data:
        raise Rejected(Reason.BAD_BODY, f"the body is not {coding} to its end")
    return text
