"""A key server that sends its head byte by byte is given its time once, whoever waits."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from hookonce.receiver.outbound.key_fetcher import KeyFetcher, KeyUnavailable
from tests.outbound.test_key_fetcher import fetch, source
from tests.support.attacks import certificate
from tests.support.waiting import until


@pytest.fixture
def dripping(tmp_path, monkeypatch):
    """The URL of a TLS server that begins an answer and never gets to its end; and the connections it still has."""
    context = certificate.serving(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "cert.pem"))
    listener = socket.create_server(("127.0.0.1", 0))
    open_now = []

    def drip(client):
        try:
            with context.wrap_socket(client, server_side=True) as secured:
                open_now.append(secured)
                secured.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
                while True:
                    secured.sendall(b"a")
                    time.sleep(0.02)
        except OSError:
            pass
        finally:
            open_now.pop()

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=drip, args=[client], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}/keys", open_now
    listener.close()


def test_server_that_drips_its_head_is_given_its_time_once(dripping):
    url, open_now = dripping
    keys = KeyFetcher(fetch_timeout=timedelta(seconds=0.5))
    mine = source((url,), fetches=(r"https://127\.0\.0\.1:\d+/keys",))

    def waits():
        began = time.monotonic()
        with pytest.raises(KeyUnavailable):
            fetch(keys, mine)
        return time.monotonic() - began

    with ThreadPoolExecutor(4) as threads:
        first = [each.result() for each in [threads.submit(waits) for _ in range(4)]]
    until(lambda: list(open_now), [])
    later = [waits() for _ in range(5)]

    assert max(first) < 3
    assert max(later) < 0.3
