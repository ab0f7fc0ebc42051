"""A key server that sends its head byte by byte is given its time once, whoever waits."""

import datetime as dt
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hookonce.receiver.outbound.key_fetcher import KeyFetcher, KeyUnavailable
from tests.outbound.test_key_fetcher import fetch, source
from tests.support.waiting import until


@pytest.fixture
def dripping(tmp_path, monkeypatch):
    """The URL of a TLS server that begins an answer and never gets to its end; and the connections it still has."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
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
