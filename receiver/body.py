"""Reads a request's body: all of it, no more than allowed, and not for ever.

Done here and not by Flask because a chunked body over MAX_CONTENT_LENGTH would be cut and passed on, and a
body that ends early would be passed on as complete (gunicorn 27, Werkzeug 3.1).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from gevent import Timeout

from providers import Reason, Rejected

PATIENCE = timedelta(seconds=10)
"""For the whole body, however steadily it drips."""


def read_body(environ: Mapping[str, Any], limit: int) -> bytes:
    """Read the raw body of at most `limit` bytes.

    Raises `Rejected`: `too_large` beyond the limit (before reading where Content-Length says so),
    `unsupported_encoding` for any Content-Encoding, `bad_body` for one that ends early or takes too long.
    """
    encoding = environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if encoding not in {"identity", ""}:
        raise Rejected(Reason.UNSUPPORTED_ENCODING, "the body is compressed; send it as it was signed")
    length = _content_length(environ)
    if length is not None and length > limit:
        raise Rejected(Reason.TOO_LARGE, f"the body has {length} bytes, {limit} are allowed")
    if length is None and not environ.get("wsgi.input_terminated"):
        return b""
    body = _read(environ["wsgi.input"], limit + 1)
    if len(body) > limit:
        raise Rejected(Reason.TOO_LARGE, f"the body has more than the {limit} bytes allowed")
    if length is not None and len(body) < length:
        raise Rejected(Reason.BAD_BODY, f"the body ended after {len(body)} of {length} bytes")
    return body


def _content_length(environ: Mapping[str, Any]) -> int | None:
    text = environ.get("CONTENT_LENGTH", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004  digits of a 64-bit number
        raise Rejected(Reason.BAD_HEADER, "Content-Length is not a number")
    return int(text)


def _read(stream: Any, size: int) -> bytes:  # noqa: ANN401  PEP 3333 gives it no type
    late = Timeout(PATIENCE.total_seconds())
    late.start()
    try:
        return bytes(stream.read(size))
    except Timeout as error:
        if error is not late:
            raise
        raise Rejected(Reason.BAD_BODY, "the body did not arrive in time") from None
    except (OSError, ValueError) as error:
        raise Rejected(Reason.BAD_BODY, f"the body could not be read: {type(error).__name__}") from None
    finally:
        late.close()
