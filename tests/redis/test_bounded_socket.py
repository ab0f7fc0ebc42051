"""An answer of Redis is bounded as a whole: in time, and in bytes."""

import time

import pytest

from hookonce.receiver.redis.bounded_socket import BoundedSocket
from hookonce.receiver.redis.client import ANSWER_SIZE, RedisUnavailable, asking, connect
from tests.support.hostile_redis import honest

PROMPT = 10
"""Seconds; an endless answer takes for ever, and one may take a quarter of a second."""


def saying(answer):
    return lambda phase, command: honest(phase, command) if phase == "hello" else answer(command)


def dripping(server, pause):
    def drip(_):
        while not server.ended.wait(pause):
            yield b"1"

    return drip


@pytest.mark.parametrize("pause", [0.05, 0])
def test_answer_that_drips_is_given_up_when_its_time_is_over(hostile, pause):
    hostile.says = saying(dripping(hostile, pause))
    with connect(hostile.url) as asked:
        began = time.monotonic()
        with pytest.raises(RedisUnavailable, match="TimeoutError"), asking():
            asked.get("a")

    assert 0.2 < time.monotonic() - began < PROMPT


def test_answer_that_is_too_large_is_given_up_before_it_is_read(hostile):
    pieces = []

    def endless(_):
        yield b"$1000000000\r\n"
        while not hostile.ended.is_set():
            pieces.append(1)
            yield b"a" * 100_000

    hostile.says = saying(endless)
    with connect(hostile.url) as asked, pytest.raises(RedisUnavailable, match="ConnectionError"), asking():
        asked.get("a")

    assert len(pieces) * 100_000 < 4 * ANSWER_SIZE


def test_answer_that_is_large_and_prompt_is_read_whole(redis_url):
    with connect(redis_url) as asked:
        asked.set("a", b"x" * (ANSWER_SIZE - 1000))

        assert [len(asked.get("a")) for _ in range(3)] == [ANSWER_SIZE - 1000] * 3


def test_connection_is_made_anew_after_an_answer_was_given_up(hostile):
    hostile.says = saying(lambda _: b"*1000000\r\n" + b"$1\r\na\r\n" * 200_000)
    with connect(hostile.url) as asked:
        with pytest.raises(RedisUnavailable), asking():
            asked.get("a")

        hostile.says = honest
        assert asked.set("a", "b")


def test_what_was_said_unasked_is_no_answer_to_the_next_question(hostile):
    hostile.says = lambda phase, command: (
        b"$1\r\na\r\n$1\r\nb\r\n" if command[0] == b"GET" else honest(phase, command)
    )
    with connect(hostile.url) as asked:
        assert [asked.get("a") for _ in range(3)] == [b"a"] * 3


def test_connection_that_could_not_be_begun_is_begun_anew(hostile):
    asked = []

    def says(phase, command):
        asked.append(command[0])
        return b"*0\r\n" if command[0] == b"HELLO" and asked.count(b"HELLO") == 1 else honest(phase, command)

    hostile.says = says
    with connect(hostile.url + "&protocol=3") as client:
        with pytest.raises(RedisUnavailable), asking():
            client.set("a", "1")

        client.set("a", "1")

    assert asked.count(b"HELLO") == 2
    assert asked[-2:] == [b"SELECT", b"SET"]


def test_library_reads_through_the_socket_that_counts(redis_url):
    with connect(redis_url) as asked:
        asked.ping()
        connection = asked.connection_pool.get_connection()

        assert isinstance(connection._parser._sock, BoundedSocket)  # noqa: SLF001
        asked.connection_pool.release(connection)
