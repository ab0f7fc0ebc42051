import socket

import pytest

from hookonce.receiver.failpoints import POINTS
from tests.support.stories import scenarios

DAYS = (
    scenarios.day_of_deliveries,
    scenarios.day_of_batches,
    scenarios.day_of_work,
    scenarios.day_of_batches_of_handlers,
    scenarios.day_in_a_hurry,
)


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.__name__)
def test_nothing_is_lost_or_doubled_wherever_the_process_dies(lab, day):
    for point, violations in scenarios.cut_everywhere(lab, day):
        assert not violations, f"cut at {point}"


def test_days_go_through_every_failpoint_there_is(lab):
    met = {point for day in DAYS for point in scenarios.points_of(lab, day)}

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
