"""A connection that brought a genuine delivery has its next one answered at once; nobody can tell by the answers."""

import socket
import time
from itertools import islice

import pytest

from tests.http.conftest import serving
from tests.http.test_bad_input import ALTERED, FRAMING
from tests.http.test_bad_input import EVENT as ALTERED_EVENT
from tests.http.test_odd_but_welcome import WAYS, WAYS_OF_PROXIES, event
from tests.support.attacks import certificate
from tests.support.raw_http import connect, converse, request
from tests.support.waiting import until


@pytest.fixture(scope="module", params=["plain", "tls"])
def server(request, fresh_database, fresh_redis, tmp_path_factory):
    directory = tmp_path_factory.mktemp("serve")
    options, context = certificate.made(directory) if request.param == "tls" else ((), None)
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        serving(directory, database_url, redis_url, options=options, context=context) as running,
    ):
        yield running
        assert "Traceback" not in running.logged()


def by_itself(server, data):
    return told(server.exchange(data))


def behind_a_genuine_one(server, data):
    """The answer on a connection that has brought two deliveries, of which the second was answered at once."""
    with connect(server.port, context=server.context) as connection:
        for body in (event(), event()):
            assert next(converse(connection, server.signed(body))).status == 200
        return told(next(converse(connection, data), None))


def told(answer):
    if answer is None:
        return None
    return answer.status, {k: v for k, v in answer.headers.items() if k != "date"}, answer.body


@pytest.mark.parametrize("data", [data for data, _, code in FRAMING.values() if code != "bad_body"])
def test_bad_framing_is_answered_alike_behind_a_genuine_delivery(server, data):
    assert behind_a_genuine_one(server, data) == by_itself(server, data)


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_altered_delivery_is_answered_alike_behind_a_genuine_one(server, alter):
    data = alter(server.signed(ALTERED_EVENT))

    assert behind_a_genuine_one(server, data) == by_itself(server, data)


@pytest.mark.parametrize("way", [*WAYS.values(), *WAYS_OF_PROXIES.values()], ids=[*WAYS, *WAYS_OF_PROXIES])
def test_odd_delivery_is_answered_alike_behind_a_genuine_one(server, way):
    data = way(server, event())
    first, second = by_itself(server, data), behind_a_genuine_one(server, data)

    assert (first[0], second[0]) == (200, 200)
    assert second == by_itself(server, data)  # both are repetitions


def test_every_delivery_of_a_connection_has_its_own_answer(server):
    bodies = [event() for _ in range(20)]

    with connect(server.port, context=server.context) as connection:
        answers = [next(converse(connection, server.signed(body))) for body in [*bodies, *bodies]]

    assert [answer.document["status"] for answer in answers] == ["accepted"] * 20 + ["duplicate"] * 20
    assert server.events() >= 20


@pytest.mark.parametrize("cut", [1, 30, 200, -1])
def test_delivery_that_comes_in_pieces_is_taken_behind_a_genuine_one(server, cut):
    data = server.signed(event())

    with connect(server.port, context=server.context) as connection:
        for body in (event(), event()):
            next(converse(connection, server.signed(body)))
        connection.sendall(data[:cut])
        time.sleep(0.05)
        answer = next(converse(connection, data[cut:]))

    assert answer.document["status"] == "accepted"


def test_requests_sent_ahead_are_answered_in_order_behind_genuine_ones(server):
    bodies = [event() for _ in range(6)]
    lives = request("GET", "/livez")

    with connect(server.port, context=server.context) as connection:
        for body in bodies[:2]:
            next(converse(connection, server.signed(body)))
        for body in bodies[2:4]:
            connection.sendall(server.signed(body))
        connection.sendall(server.signed(bodies[4]) + lives + server.signed(bodies[5]))
        answers = list(islice(converse(connection, b""), 5))

    assert [answer.document["status"] for answer in answers] == ["accepted"] * 3 + ["ok", "accepted"]


def test_sender_that_hangs_up_has_its_delivery_stored(server):
    before = server.events()

    with connect(server.port, context=server.context) as connection:
        for body in (event(), event()):
            next(converse(connection, server.signed(body)))
        connection.sendall(server.signed(event()))

    until(server.events, before + 3, what="the delivery of who hung up")


@pytest.mark.parametrize("server", ["plain"], indirect=True)  # the end of TLS is the end of both sides
def test_sender_that_ends_its_side_gets_the_answer(server):
    with connect(server.port) as connection:
        for body in (event(), event()):
            next(converse(connection, server.signed(body)))
        connection.sendall(server.signed(event()))
        connection.shutdown(socket.SHUT_WR)
        answer = next(converse(connection, b""))

    assert answer.document["status"] == "accepted"
