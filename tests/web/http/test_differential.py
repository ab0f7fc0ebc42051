"""Where three readers differ, ours refuses, or the difference has a name here: nothing may be smuggled between them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookonce.receiver.web.http.head import HeadReader, shape_of
from tests.web.http.readers import REFUSED, familiar, gunicorns, h11s, ours

PLAIN = b"POST /hooks/stripe HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /hooks/stripe?a=b HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n"
)
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\nUpgrade: h2c\r\n"
"""What Java's HttpClient sends with every first request, unless it is told not to; a server may pass it over."""
SEEDS = [
    PLAIN,
    CHUNKED,
    b"GET /livez HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Type: a/b\r\nContent-Length: 3\r\n\r\nabc",
    b"GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\nX-A: c\r\n\r\n",
    *(each.replace(b"Host", OFFER + b"Host") for each in (PLAIN, CHUNKED)),
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
]
PIECES = [
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b";",
        b",",
        b"0",
        b"5",
        b"f",
        b"x",
        b"\0",
        b"\xff",
        b"_",
        b"+",
    ),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"chunked", b"gzip, ", b"HTTP/1.0", b"0x"),
    *(b'"', b"=", b"\x0b", b"\x7f", b"Host: b\r\n", b" \r\n", b"%", b"#", b"?", b"//", b"http://a/", b""),
]
CASES = {
    "request line of 0.9": b"GET /\r\n\r\n",
    "version 2.0": PLAIN.replace(b"1.1", b"2.0"),
    "version 1.2": PLAIN.replace(b"1.1", b"1.2"),
    "version in lower case": PLAIN.replace(b"HTTP", b"http"),
    "two spaces after the method": PLAIN.replace(b"POST ", b"POST  "),
    "two spaces before the version": PLAIN.replace(b" HTTP", b"  HTTP"),
    "tab before the version": PLAIN.replace(b" HTTP", b"\tHTTP"),
    "absolute target": PLAIN.replace(b" /", b" http://a/"),
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "authority": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "fragment": PLAIN.replace(b"stripe", b"#stripe"),
    "connect to a path": PLAIN.replace(b"POST", b"CONNECT"),
    "bare LF": PLAIN.replace(b"\r\n", b"\n"),
    "bare CR": PLAIN.replace(b"test\r\n", b"te\rst\r\n"),
    "folded": PLAIN.replace(b"test\r\n", b"test\r\n more\r\n"),
    "space before the colon": PLAIN.replace(b"Length:", b"Length :"),
    "NUL": PLAIN.replace(b"test", b"te\0st"),
    "length with a sign": PLAIN.replace(b": 5", b": +5"),
    "length in hex": PLAIN.replace(b": 5", b": 0x5"),
    "length in a list": PLAIN.replace(b": 5", b": 5, 5"),
    "length empty": PLAIN.replace(b": 5", b":"),
    "length too long": PLAIN.replace(b": 5", b": 50"),
    "length of 25 digits": PLAIN.replace(b": 5", b": " + b"0" * 24 + b"5"),
    "length twice": PLAIN.replace(b"Host", b"Content-Length: 5\r\nHost"),
    "length and chunks": CHUNKED.replace(b"Host", b"Content-Length: 5\r\nHost"),
    "chunks and length": CHUNKED.replace(b"chunked\r\n", b"chunked\r\nContent-Length: 5\r\n"),
    "chunked twice": CHUNKED.replace(b"chunked", b"chunked, chunked"),
    "chunked in two headers": CHUNKED.replace(b"Host", b"Transfer-Encoding: chunked\r\nHost"),
    "chunked not last": CHUNKED.replace(b"chunked", b"chunked, identity"),
    "gzip, chunked": CHUNKED.replace(b"chunked", b"gzip, chunked"),
    "chunked in 1.0": CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "chunked quoted": CHUNKED.replace(b"chunked", b'"chunked"'),
    "chunked behind a vertical tab": CHUNKED.replace(b" chunked", b" \x0bchunked"),
    "size with a sign": CHUNKED.replace(b"\n5\r", b"\n+5\r"),
    "size in 0x": CHUNKED.replace(b"\n5\r", b"\n0x5\r"),
    "size with a space": CHUNKED.replace(b"\n5\r", b"\n5 \r"),
    "size of 17 digits": CHUNKED.replace(b"\n5\r", b"\n" + b"f" * 17 + b"\r"),
    "size ends with LF": CHUNKED.replace(b"\n5\r\n", b"\n5\n"),
    "chunk longer than its size": CHUNKED.replace(b"hello", b"hello!"),
    "chunk ends with LF": CHUNKED.replace(b"hello\r\n", b"hello\n"),
    "no last chunk": CHUNKED.partition(b"0\r\nX")[0],
    "trailer folded": CHUNKED.replace(b"X: y\r\n", b"X: y\r\n z\r\n"),
    "trailer with a length": CHUNKED.replace(b"X: y", b"Content-Length: 7"),
    "101 headers": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n",
    "request line of 4,095 bytes": b"GET /" + b"a" * 4081 + b" HTTP/1.1\r\n\r\n",
    "no host": PLAIN.replace(b"Host", b"Other"),
    "two hosts": PLAIN.replace(b"Host", b"Host: other\r\nHost"),
    "two types": PLAIN.replace(b"Host", b"Content-Type: a/b\r\nContent-Type: c/d\r\nHost"),
    "unknown expectation": PLAIN.replace(b"Host", b"Expect: 200-ok\r\nHost"),
    "UTF-8 in a path": PLAIN.replace(b"stripe", "süß".encode()),
    "Latin-1 in a query": PLAIN.replace(b"stripe", "stripe?süß".encode("latin-1")),
    "half a character in a query": PLAIN.replace(b"stripe", "stripe?ü".encode()[:-1]),
    "other method": PLAIN.replace(b"POST", b"POSTED"),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_reader_refuses_what_two_readers_may_read_in_two_ways(data):
    assert ours(data) is REFUSED


@pytest.mark.parametrize("data", SEEDS)
def test_readers_agree_on_what_is_proper(data):
    assert ours(data) == gunicorns(data) == h11s(data)
    assert ours(data) is not REFUSED


NAMED = {
    "a header with an underscore is left out, as gunicorn does it, and frames nothing": (
        PLAIN.replace(b"Host", b"Content_Length: 3\r\nTransfer_Encoding: chunked\r\nHost"),
        [gunicorns, h11s],
        [],
    ),
    "a Content-Type that came twice is one; gunicorn refuses it": (
        PLAIN.replace(b"Host", b"Content-Type: a/b\r\ncontent-type:  a/b\r\nHost"),
        [h11s],
        [gunicorns],
    ),
    "UTF-8 in a query is taken; the others refuse it": (
        CHUNKED.replace(b"a=b", "name=Jürgen+😀".encode(), 1),
        [],
        [gunicorns, h11s],
    ),
    "an empty line before the request is passed over (RFC 9112, 2.2); h11 refuses it": (
        b"\r\n" + PLAIN,
        [gunicorns],
        [h11s],
    ),
    "extensions are dropped unread; gunicorn refuses those without a name or a value": (
        CHUNKED.replace(b";a=b", b";="),
        [h11s],
        [gunicorns],
    ),
    "trailers are dropped unread; gunicorn refuses some of their names": (
        CHUNKED.replace(b"X: y", b"Host: y"),
        [h11s],
        [gunicorns],
    ),
    "a coding is written in any case, and left so; h11 gives it in lower case": (
        CHUNKED.replace(b"chunked", b"Chunked"),
        [gunicorns],
        [],
    ),
}


@pytest.mark.parametrize(("data", "same", "refusing"), NAMED.values(), ids=NAMED)
def test_differences_are_what_their_names_say(data, same, refusing):
    read = ours(data)

    assert read is not REFUSED
    assert [reader(data) for reader in same] == [read] * len(same)
    assert [reader(data) for reader in refusing] == [REFUSED] * len(refusing)


def mangled(seed, edits):
    data = bytearray(seed)
    for where, length, piece in edits:
        at = int(where * len(data))
        data[at : at + length] = piece
    return bytes(data)


edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 4), st.sampled_from(PIECES) | st.binary(max_size=2)),
    min_size=1,
    max_size=3,
)


@given(seed=st.sampled_from(SEEDS), edits=edits)
@example(seed=PLAIN, edits=[(0.0, 0, b"\r\n")])
@example(seed=CHUNKED, edits=[(0.2, 0, "ü".encode())])
def test_readers_agree_on_whatever_ours_takes(seed, edits):
    data = mangled(seed, edits)
    read = ours(data)

    assert ours(data, step=1) == read  # however it is cut
    if read is REFUSED:
        return
    by_gunicorn, by_h11 = gunicorns(data), h11s(data)
    types = data.lower().count(b"content-type")
    if by_gunicorn is not REFUSED or not (has_chunk_extras(data) or types > 1 or not read.target.isascii()):
        assert by_gunicorn == read
    is_strange = data.startswith(b"\r\n") or not read.target.isascii()
    if by_h11 is not REFUSED or not is_strange:
        assert by_h11 == read._replace(headers=lowered(read.headers))


NAMES_TWICE = b"X-A: b\r\nConnection: Keep-Alive\r\nX-A: \t\xe4 \r\n"
FAMILIAR = (
    PLAIN,
    b"POST /a%20b?c=d HTTP/1.1\r\nhost:b\r\n" + NAMES_TWICE + b"Content-Length:5\r\n\r\nhello",
    b"PUT / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
)


@given(like=st.sampled_from(FAMILIAR), edits=edits | st.just([]))
@example(like=PLAIN, edits=[(1.0, 0, b"GET / HTTP/1.1\r\n")])
@example(like=PLAIN, edits=[(0.99, 1, b"")])
def test_familiar_shape_reads_what_the_parser_reads(like, edits):
    data = mangled(like, edits)
    read = familiar(like, data)

    assert read is None or read == ours(data)
    assert read is not None or edits


@pytest.mark.parametrize("data", [*CASES.values(), *SEEDS, *(data for data, *_ in NAMED.values())])
def test_familiar_shape_reads_nothing_that_is_odd(data):
    for like in FAMILIAR:
        assert familiar(like, data) is None or familiar(like, data) == ours(data)


@pytest.mark.parametrize("odd", [b"Expect: 100-continue", b"Upgrade: h2c", b"A_B: c", b"Connection: close"])
def test_head_that_says_more_than_a_length_has_no_shape(odd):
    reader = HeadReader(4094, 100, 65536)

    head, _ = reader.receive(PLAIN.replace(b"Host", odd + b"\r\nHost"))

    assert shape_of(head) is None


def has_chunk_extras(data):
    """Whether there may be extensions or trailers that gunicorn judges."""
    return b"chunked" in data.lower()


def lowered(headers):
    return tuple((name, value.lower() if name == "transfer-encoding" else value) for name, value in headers)
