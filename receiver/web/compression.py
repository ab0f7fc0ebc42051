"""Answers of the console and the API, compressed for clients that take gzip; deliveries are never answered so.

A length of what is compressed tells of a secret beside a text that a stranger chose (BREACH, ADR 42). So an answer to a
request that another site has made is sent as it is, and a form's token looks different in each answer.
"""

import zlib
from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from flask import Flask, Request, Response, request

LEAST: Final = 1024
"""Bytes of a body that is worth it: about what fits into one packet beside the headers."""
LEVEL: Final = 6
"""Of zlib: 250 KB take 4 ms; level 9 saves another hundredth for twice as long."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_TEXTS: Final = frozenset(
    {"application/json", "application/problem+json", "image/svg+xml", "text/javascript"}
)
_OWN_SITE: Final = frozenset({"", "same-origin", "none"})
"""Of Sec-Fetch-Site: a client that is no browser, a page of ours, and what a person typed or has as a bookmark."""


def compress_answers(app: Flask, but: Collection[str] = ()) -> None:
    """Have each answer of this application compressed, where that may be, `but` those of these endpoints."""
    app.after_request(lambda answer: answer if request.endpoint in but else compressed(request, answer))


def compressed(request: Request, response: Response) -> Response:
    """Return the answer, its body as gzip if that is worth it, and the client takes it."""
    is_text = response.mimetype in _TEXTS or response.mimetype in {"text/html", "text/css", "text/plain"}
    if response.status_code in {204, 206} or "Content-Encoding" in response.headers or not is_text:
        return response
    response.vary.add("Accept-Encoding")
    if response.status_code == HTTPStatus.NOT_MODIFIED or request.accept_encodings.quality("gzip") <= 0:
        return response
    if request.headers.get("Sec-Fetch-Site", "") not in _OWN_SITE:
        return response
    response.direct_passthrough = False  # a file would be sent past us
    body = response.get_data()
    if len(body) < LEAST:
        return response
    writer = zlib.compressobj(LEVEL, zlib.DEFLATED, _GZIP)
    response.set_data(writer.compress(body) + writer.flush())
    response.headers["Content-Encoding"] = "gzip"
    tag, _ = response.get_etag()
    if tag:
        response.set_etag(tag, weak=True)  # the same text, in other bytes
    return response
