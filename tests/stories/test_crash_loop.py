"""A process dies at each failpoint there is, once.

Each failpoint of each day, as often as the day goes through it, is in long/test_every_cut.py.
"""

import socket

import pytest

from hookonce.receiver.failpoints import POINTS
from tests.support.stories import scenarios

RECEIVING = ("delivery.", "window.", "ledger.", "conflict.", "bell.", "tally.")
PARTS = {
    "of receivers": ((scenarios.day_of_deliveries, scenarios.day_of_batches), RECEIVING),
    "of workers": (
        (
            scenarios.day_of_work,
            scenarios.day_of_batches_of_handlers,
            scenarios.day_in_a_hurry,
            scenarios.day_after_a_death,
        ),
        tuple({f"{point.partition('.')[0]}." for point in POINTS} - set(RECEIVING)),
    ),
}


@pytest.mark.parametrize(("days", "among"), PARTS.values(), ids=PARTS)
def test_nothing_is_lost_or_doubled_wherever_the_process_dies(lab, days, among):
    cut = []
    for point, violations in scenarios.cut_at_each(lab, days, among=among):
        assert not violations, f"cut at {point}"
        cut.append(point)

    assert set(cut) == {None, *(point for point in POINTS if point.startswith(among))}


def test_days_go_through_every_failpoint_there_is(lab):
    days = [day for days, _ in PARTS.values() for day in days]

    met = {point for day in days for point in scenarios.points_of(lab, day)}

    assert met == set(POINTS)


def test_receiver_of_the_stories_is_the_worker_that_serves(lab):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(lab.receiver().path)
        client.sendall(b"POST /hooks/stripe\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(4096), b""))

    assert (answer.partition(b"\r\n")[0], b'"code": "bad_header"' in answer) == (
        b"HTTP/1.1 400 Bad Request",
        True,
    )
