"""What a Content-Encoding may say, and how far a body is inflated."""

import gzip
import tracemalloc
import zlib

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.reading.content_coding import coding_of, decoded, longest_text, text_and_headers

TEXT = b'{"id":"1","type":"a"}'
MIB = 1 << 20
LIMIT = 25 * MIB


def deflated(text, window=zlib.MAX_WBITS):
    made = zlib.compressobj(9, zlib.DEFLATED, window)
    return made.compress(text) + made.flush()


def delivery(body, coding):
    return Delivery("POST", "", {"content-encoding": coding}, body)


def refusal(body, coding, limit=LIMIT):
    with pytest.raises(Rejected) as refused:
        decoded(delivery(body, coding), limit)
    return refused.value.reason


@pytest.mark.parametrize(
    ("named", "coding"),
    [
        ("", ""),
        ("identity", ""),
        (" Identity ", ""),
        ("none", ""),
        ("utf-8", ""),
        ("UTF-8, identity", ""),
        ("gzip", "gzip"),
        ("X-Gzip", "gzip"),
        ("identity,gzip", "gzip"),
        ("deflate", "deflate"),
    ],
)
def test_coding_is_told_from_what_is_none(named, coding):
    assert coding_of({"content-encoding": named}) == coding


@pytest.mark.parametrize("named", ["br", "zstd", "gzip, gzip", "gzip, deflate", "compress", "*", "gz ip"])
def test_other_coding_is_refused(named):
    assert refusal(TEXT, named) == Reason.UNSUPPORTED_ENCODING


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT, 1)),
        ("deflate", deflated(TEXT)),
        ("deflate", deflated(TEXT, -zlib.MAX_WBITS)),
    ],
    ids=["gzip", "gzip by another name", "deflate", "deflate without a head"],
)
def test_text_is_read_and_what_was_sent_is_kept(coding, body):
    read = decoded(delivery(body, coding), LIMIT)

    assert (read.body, read.sent) == (TEXT, body)
    assert decoded(read, LIMIT) is read
    assert text_and_headers(body, {"content-encoding": coding, "a": "b"}) == (TEXT, {"a": "b"})


@pytest.mark.parametrize(
    ("coding", "body"), [("gzip", TEXT), ("gzip", b""), ("deflate", b""), ("identity", TEXT)]
)
def test_body_that_is_not_compressed_stays_as_it_is(coding, body):
    read = decoded(delivery(body, coding), LIMIT)

    assert (read.body, read.sent) == (body, None)


PACKED = gzip.compress(TEXT)
BROKEN = {
    "gzip cut off": (PACKED[:-9] + PACKED[-4:], "gzip"),
    "gzip of another text": (PACKED[:-8] + bytes(4) + PACKED[-4:], "gzip"),
    "gzip and more": (PACKED + b"x", "gzip"),
    "two members": (PACKED + PACKED, "gzip"),
    "head alone": (PACKED[:10] + PACKED[-4:], "gzip"),
    "no deflate": (TEXT, "deflate"),
    "deflate cut off": (deflated(TEXT)[:-6], "deflate"),
    "deflate and more": (deflated(TEXT) + b"x", "deflate"),
}


@pytest.mark.parametrize(("body", "coding"), BROKEN.values(), ids=BROKEN)
def test_broken_body_is_refused(body, coding):
    assert refusal(body, coding) in {Reason.BAD_BODY, Reason.TOO_LARGE}
    assert text_and_headers(body, {"content-encoding": coding}) == (body, {"content-encoding": coding})


@pytest.mark.parametrize("make", [gzip.compress, deflated], ids=["gzip", "deflate"])
def test_text_may_have_a_megabyte_and_fifty_times_the_body(make):
    coding = "gzip" if make is gzip.compress else "deflate"
    small, dense = make(b" " * MIB), make(b" " * (MIB + 1))

    assert len(decoded(delivery(small, coding), LIMIT).body) == MIB
    assert refusal(dense, coding) == Reason.TOO_LARGE
    assert refusal(make(TEXT * 100), coding, limit=len(TEXT) * 100 - 1) == Reason.TOO_LARGE


BOMB = deflated(bytes(64 * MIB), 31)
BOMBS = {
    "gzip": (BOMB, "gzip"),
    "gzip that says it is small": (BOMB[:-4] + (1000).to_bytes(4, "little"), "gzip"),
    "deflate": (deflated(bytes(64 * MIB)), "deflate"),
    "gzip beyond the length that its trailer has room for": (BOMB[:-4] + bytes(3) + b"\xff", "gzip"),
}


@pytest.mark.parametrize(("body", "coding"), BOMBS.values(), ids=BOMBS)
def test_bomb_takes_no_more_memory_than_a_text_may_have(body, coding):
    tracemalloc.start()

    reason = refusal(body, coding)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reason == Reason.TOO_LARGE
    assert most < 10 * MIB


def test_empty_text_is_one():
    assert decoded(delivery(gzip.compress(b""), "gzip"), LIMIT).body == b""


def test_length_of_a_text_is_known_before_it_is_inflated():
    assert longest_text(PACKED, "gzip", LIMIT) == len(TEXT)
    assert longest_text(deflated(TEXT), "deflate", LIMIT) == MIB
    assert longest_text(TEXT, "", LIMIT) is None
