"""What one connection may cost is bounded, without a socket to try it on."""

import io
import time

import pytest

from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.answer import Answer, BadAnswer
from hookonce.receiver.web.http.chunks import BadChunks, ChunkReader
from hookonce.receiver.web.http.clients import Client
from hookonce.receiver.web.http.crowd import Crowd, Graves, Pace
from hookonce.receiver.web.http.head import BadHead, HeadReader

SLICE = limits.SLICE_SIZE
ENDLESS = {
    "chunks of one byte": b"1\r\nx\r\n" * 500_000,
    "chunks of empty lines": b"fffffff\r\n" + b"\r\n\r\n" * 500_000,
    "one extension": b"1;a=" + b"x" * 3_000_000,
    "extensions": (b"1;a=" + b"x" * 100 + b"\r\nx\r\n") * 30_000,
    "a size of zeros": b"0" * 3_000_000,
    "trailers": b"0\r\n" + b"A: b\r\n" * 500_000,
    "one trailer": b"0\r\nA: " + b"b" * 3_000_000,
}


@pytest.mark.parametrize("data", ENDLESS.values(), ids=ENDLESS)
def test_chunk_reader_gives_up_on_what_never_ends(data):
    reader, taken = ChunkReader(), 0

    with pytest.raises(BadChunks):  # noqa: PT012  the loop is what ends
        for at in range(0, len(data), SLICE):
            reader.receive(data[at : at + SLICE])
            taken += SLICE

    assert taken < 512 * 1024


def test_chunk_reader_takes_a_document_written_token_by_token():
    document = b'"0",' * 15_000
    data = b'4\r\n"0",\r\n' * 15_000 + b"0\r\n\r\nnext"
    reader, body, rest = ChunkReader(), b"", b""

    for at in range(0, len(data), 1000):
        piece, rest = reader.receive(data[at : at + 1000])
        body += piece

    assert (body, rest, reader.is_complete) == (document, b"next", True)


HEADS = {
    "an endless request line": b"GET /" + b"a" * 300_000,
    "an endless method": b"GET" * 100_000,
    "an endless header": b"GET / HTTP/1.1\r\nA: " + b"b" * 300_000,
    "an endless name": b"GET / HTTP/1.1\r\n" + b"a" * 300_000,
    "endless headers": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 50_000,
    "endless long headers": b"GET / HTTP/1.1\r\n" + (b"A: " + b"b" * 4000 + b"\r\n") * 75,
    "endless empty lines": b"\r\n" * 150_000,
}


@pytest.mark.parametrize("step", [1, 100, SLICE, 16_384])
@pytest.mark.parametrize("data", HEADS.values(), ids=HEADS)
def test_head_reader_gives_up_on_what_never_ends(data, step):
    reader = HeadReader(4094, 100, 65_536)
    taken = 0

    with pytest.raises(BadHead):  # noqa: PT012  the loop is what ends
        for at in range(0, len(data), step):
            assert reader.receive(data[at : at + step]) is None
            taken = at

    assert taken <= limits.HEAD_SIZE
    assert reader.buffered <= limits.HEAD_SIZE + 16_384


def test_head_reader_costs_no_more_byte_by_byte_than_its_bytes():
    data = b"GET / HTTP/1.1\r\nA: " + b"b" * 60_000
    reader, began = HeadReader(4094, 100, 65_536), time.process_time()

    for at in range(len(data)):
        reader.receive(data[at : at + 1])

    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("name", "value"), [("A", "b\r\nC: d"), ("A", "b\nc"), ("A\r\nB", "c"), ("A", "\0"), ("A", "\u20ac")]
)
def test_answer_never_makes_two_headers_of_one(name, value):
    answer = Answer()
    answer.begin("200 OK", [(name, value)])

    with pytest.raises(BadAnswer):
        answer.head(closes=False)


ONE = Client()


class Member:
    is_genuine = False

    def __init__(self, client=None):
        self.ended = ""
        self.client = client or ONE

    def is_late(self, now):
        return now > 10

    def expire(self):
        self.ended = "expired"

    def evict(self):
        self.ended = "evicted"

    def wake(self):
        pass


def test_crowd_ends_the_oldest_stranger_without_a_request():
    crowd = Crowd(3)
    busy, known, old, young = members = [Member() for _ in range(4)]
    for member in members:
        crowd.enter(member)
    crowd.works(busy)
    crowd.works(known)
    known.is_genuine = True
    crowd.rests(known)

    made = [crowd.make_room() for _ in range(4)]

    assert made == [True, True, True, False]
    assert [member.ended for member in (busy, known, old, young)] == ["", "evicted", "evicted", "evicted"]


def test_crowd_ends_the_oldest_where_heads_fill_their_memory():
    crowd = Crowd(10)
    first, second = Member(), Member()
    crowd.enter(first)
    crowd.enter(second)

    crowd.holds(limits.HEADS_SIZE)
    crowd.holds(1)

    assert (first.ended, second.ended) == ("evicted", "")


def test_crowd_ends_those_whose_time_is_over():
    crowd, member = Crowd(10), Member()
    crowd.enter(member)

    crowd.look(9)
    before = member.ended
    crowd.look(11)

    assert (before, member.ended) == ("", "expired")


def test_pace_slows_a_flood_and_nobody_else():
    pace = Pace(a_second=100, at_once=10, longest=2)

    calm = [pace.delay(now) for now in range(1, 20)]
    flood = [pace.delay(20) for _ in range(1000)]

    assert calm == [0] * 19
    assert flood[:10] == pytest.approx([0] * 10, abs=1e-6)
    assert flood[50] == pytest.approx(0.41, abs=0.02)
    assert max(flood) == pytest.approx(2)
    assert pace.delay(30) == 0


def test_graves_keep_sockets_for_a_while_and_no_more_than_they_may():
    graves, sockets = Graves(2, seconds=100), [io.BytesIO() for _ in range(3)]

    for each in sockets:
        graves.bury(each)
    kept = [not each.closed for each in sockets]
    graves.empty()

    assert kept == [False, True, True]
    assert all(each.closed for each in sockets)


def test_crowd_ends_the_oldest_handshake_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(limits, "HANDSHAKES", 2)
    crowd = Crowd(10)
    ready, old, young, new = members = [Member() for _ in range(4)]
    for member in members:
        crowd.enter(member)

    crowd.shakes_hands(ready)
    crowd.has_shaken_hands(ready)
    for member in (old, young, new):
        crowd.shakes_hands(member)

    assert [member.ended for member in members] == ["", "evicted", "", ""]
