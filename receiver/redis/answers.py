"""Answers of Redis, as far as they can be ours: nothing here is believed to be of the kind that was asked for.

A program that can write to Redis can put `inf` where a number was, and whoever stands in its place can answer
anything. Each function raises `RedisUnavailable` where the answer is of another kind: such a Redis is as good as away.
"""

import re
from collections.abc import Sequence

from hookonce.receiver.redis.client import RedisUnavailable

MAX_COUNT = 2**31 - 1
"""The most that is counted of anything; beyond, the number says no more."""
_DIGITS = 19
_PLAIN = re.compile(r"[^ -~]+")


def whole_number(answer: object, most: int) -> int:
    """Return a whole number, brought to between 0 and `most`."""
    if type(answer) is not int:
        raise RedisUnavailable("an answer that is no number")
    return min(max(answer, 0), most)


def number_in(line: bytes, most: int) -> int:
    """Return the whole number that a line of a text is, no more than `most`."""
    if not line.isdigit() or len(line) > _DIGITS:
        raise RedisUnavailable("an answer that is no number")
    return min(int(line), most)


def items(answer: object, number: int) -> Sequence[object]:
    """Return a list of so many answers, each of any kind."""
    if not isinstance(answer, list) or len(answer) != number:
        raise RedisUnavailable("an answer that is no such list")
    return answer


def lines(answer: object, number: int) -> Sequence[bytes]:
    """Return the lines of a text, so many: the library takes a text ten times as fast as a list."""
    if isinstance(answer, str):  # so the URL may have it
        answer = answer.encode()
    found = answer.split(b"\n") if isinstance(answer, bytes) else []
    if len(found) != number:
        raise RedisUnavailable("an answer that has not so many lines")
    return found


def plain(answer: object, longest: int = 40) -> str:
    """Return what may be shown of a text: visible ASCII characters and spaces, so many at most."""
    text = answer if isinstance(answer, str) else str(answer)[:longest]
    return _PLAIN.sub("?", text[:longest])
