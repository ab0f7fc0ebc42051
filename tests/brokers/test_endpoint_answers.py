"""Answers of endpoints as no library sends them, over a plain socket."""

import socket
import threading
import time
from datetime import timedelta
from itertools import repeat

import pytest

from hookonce.receiver.outbound.brokers import endpoint
from hookonce.receiver.outbound.brokers.port import Away, Refused

LAST = b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.fixture
def answering():
    """Returns the URL of an endpoint that sends these pieces, whatever comes."""
    listeners = []

    def start(*pieces):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve():
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                try:
                    for each in pieces[0] if len(pieces) == 1 else pieces:
                        client.sendall(each)
                        time.sleep(0.02)
                except OSError:
                    pass

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"

    yield start
    for each in listeners:
        each.close()


@pytest.mark.parametrize(
    "interim",
    [
        [b"HTTP/1.1 100 Continue\r\n\r\n"],
        [b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"],
        [b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 199 X\r\n\r\n"],
    ],
)
def test_answer_is_the_one_after_interim_ones(answering, interim):
    outcome = endpoint.post(answering(*interim, LAST), {}, b"x", allow_private=True)

    assert outcome is None


def test_change_of_protocols_is_no_success(answering):
    url = answering(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", LAST)

    assert isinstance(endpoint.post(url, {}, b"x", allow_private=True), Refused)


@pytest.mark.parametrize(
    "pieces",
    [
        repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
        repeat(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
        [b"HTTP/1.1 200 OK\r\nx-drip: ", *[b"a"] * 1000],
        [b"HTTP", *[b" "] * 1000],
    ],
    ids=["100", "103", "header", "status"],
)
def test_endpoint_that_comes_to_no_end_is_away(answering, monkeypatch, pieces):
    monkeypatch.setattr(endpoint, "HEAD", timedelta(seconds=0.5))
    url, began = answering(pieces), time.monotonic()

    outcome = endpoint.post(url, {}, b"x", allow_private=True)

    assert isinstance(outcome, Away)
    assert time.monotonic() - began < 10
