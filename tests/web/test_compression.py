"""Answers are compressed for clients that take it, unless another site has made the request."""

import gzip

from flask import Flask, Response

from hookonce.receiver.web.compression import LEAST, compress_answers
from tests.support.for_each import for_each

LONG = "a long page " * LEAST
GZIP = {"Accept-Encoding": "gzip, deflate, br"}


def answered(headers=None, *, text=LONG, status=200, mimetype="text/html"):
    app = Flask("compression")
    compress_answers(app)
    app.add_url_rule("/", view_func=lambda: Response(text, status, mimetype=mimetype))
    return app.test_client().get("/", headers=headers)


def test_long_page_is_compressed_for_a_client_that_takes_it():
    answer = answered(GZIP)

    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.content_length == len(answer.data) < len(LONG) / 10
    assert gzip.decompress(answer.data).decode() == LONG


@for_each(
    [
        ({}, {}),
        ({"Accept-Encoding": "gzip;q=0, br"}, {}),
        (GZIP | {"Sec-Fetch-Site": "cross-site"}, {}),
        (GZIP | {"Sec-Fetch-Site": "same-site"}, {}),
        (GZIP, {"text": "x" * (LEAST - 1)}),
        (GZIP, {"mimetype": "application/octet-stream"}),
        (GZIP, {"status": 206}),
    ]
)
def test_other_answer_is_sent_as_it_is(headers, made):
    answer = answered(headers, **made)

    assert "Content-Encoding" not in answer.headers
    assert answer.text == made.get("text", LONG)


def test_answer_that_nothing_has_changed_varies_as_the_page_does():
    answer = answered(GZIP, text="", status=304)

    assert (answer.headers["Vary"], answer.headers.get("Content-Encoding")) == ("Accept-Encoding", None)


@for_each(["same-origin", "none"])
def test_page_of_ours_and_a_bookmark_get_compressed_answers(site):
    assert answered(GZIP | {"Sec-Fetch-Site": site}).headers["Content-Encoding"] == "gzip"
