from dataclasses import replace

import pytest

from tests.support.captured import captured_as

PROBE = captured_as("smartsheet/challenge")


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("a", b'{"challenge":"b"}'),
        ("a b", b'{"challenge":"a b"}'),
        ("a\r\nx: y", b'{"challenge":"a\\r\\nx: y"}'),
        ("a", b'{"challenge":"a"' + b" " * 70_000 + b"}"),
        ("a", b"challenge=a"),
    ],
)
def test_challenge_is_one_plain_word_that_stands_twice(header, body):
    delivery = replace(PROBE.delivery, headers={"smartsheet-hook-challenge": header}, body=body)

    assert PROBE.probe(delivery, [PROBE.secret]) is None
