import gc
import socket
import tempfile
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from hookonce.receiver.web.gevent_worker import (
    COLLECTOR_THRESHOLDS,
    MAX_BUFFERED,
    Connection,
    GeventWorker,
)

HEAD, BODY = b"HTTP/1.1 200 OK\r\n\r\n", b"{}"


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10)
        theirs.settimeout(10)
        yield Connection(ours), theirs


def is_silent(client):
    client.settimeout(0)
    try:
        client.recv(1)
    except BlockingIOError:
        return True
    finally:
        client.settimeout(10)
    return False


def test_connection_sends_head_and_body_together(ends):
    connection, client = ends

    connection.sendall(HEAD)
    connection.sendall(BODY)
    assert is_silent(client)
    connection.flush()

    assert client.recv(1024) == HEAD + BODY
    connection.flush()
    assert is_silent(client)


def test_connection_holds_no_long_answer(ends):
    connection, client = ends

    connection.sendall(b"x" * (MAX_BUFFERED + 1))

    assert client.recv(1)


def test_connection_sends_file_after_its_head(ends):
    connection, client = ends

    with tempfile.TemporaryFile() as file:
        file.write(BODY)
        file.seek(0)
        connection.sendall(HEAD)
        connection.sendfile(file)

    assert client.recv(len(HEAD + BODY), socket.MSG_WAITALL) == HEAD + BODY


@pytest.fixture
def collector():
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collector")
def test_worker_leaves_what_it_has_loaded_to_no_collector():
    worker = GeventWorker.__new__(GeventWorker)
    worker.cfg, worker.app = Config(), SimpleNamespace(wsgi=lambda: None)

    worker.load_wsgi()

    assert gc.get_threshold() == COLLECTOR_THRESHOLDS
    assert gc.get_freeze_count() > 0
