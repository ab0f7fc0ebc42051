import base64
import re
import socket
import threading

import pytest
import requests

from hookonce.providers.kit import http_file
from tests.support.waiting import until

BODY = b'[{"id": "evt_1",\r\n "name": "Zo\xc3\xab"}\x00\xff\n\n'


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def sender(free_port):
    """Send requests as soon as somebody listens; gives the port, `send`, and `answers`, which waits for them all."""
    threads, came = [], []

    def knock(calls):
        connected(free_port).close()
        with requests.Session() as session:
            for method, path, options in calls:
                came.append(session.request(method, f"http://127.0.0.1:{free_port}{path}", **options))

    def send(*calls):
        threads.append(threading.Thread(target=knock, args=[calls]))
        threads[-1].start()

    def answers():
        for thread in threads:
            thread.join(30)
        return came

    send.port, send.answers = free_port, answers
    yield send
    answers()


def connected(port):
    """A connection, as soon as somebody listens.

    Retries of urllib3 would log each URL that was refused: where a test before has set up logging, on stderr, among
    what capture says.
    """
    return until(lambda: socket.create_connection(("127.0.0.1", port)), away=ConnectionRefusedError)


def post(path="/hooks/acme", body=BODY, **headers):
    return "POST", path, {"data": body, "headers": {k.replace("_", "-"): v for k, v in headers.items()}}


@pytest.mark.usefixtures("place")
def test_capture_prints_the_next_delivery_byte_for_byte(sender, hookonce):
    sender(post("/hooks/acme?a=b", X_Acme_Signature="sha256=00", Content_Type="application/json"))

    ran = hookonce("capture", "acme", "--port", sender.port)

    assert ran.code == 0
    head, _, body = ran.out.partition(b"\n\n")
    assert body == BODY
    assert head.startswith(b"POST /hooks/acme?a=b HTTP/1.1\n")
    assert b"\nX-Acme-Signature: sha256=00\n" in head
    assert f"captured POST /hooks/acme?a=b, {len(BODY)} bytes" in ran.err
    assert [answer.status_code for answer in sender.answers()] == [200]


@pytest.mark.usefixtures("place")
def test_capture_masks_credentials_and_keeps_signatures(sender, hookonce):
    basic = base64.b64encode(b"user:pass").decode()
    sender(
        post(
            "/hooks/acme?token=t0p&api_key=k3y&page=2",
            Authorization=f"Basic {basic}",
            Cookie="session=c00kie",
            X_Acme_Token="t0ken",
            X_Token_Signature="v1=feed",
            X_Kept_Token="kept",
        )
    )

    ran = hookonce("capture", "acme", "--port", sender.port, "--keep", "x-kept-token")

    head = ran.out.partition(b"\n\n")[0].decode()
    for secret in (basic, "c00kie", "t0ken", "t0p", "k3y"):
        assert secret not in head + ran.err
    assert "/hooks/acme?token=[secret]&api_key=[secret]&page=2" in head
    assert "Authorization: Basic [secret]" in head
    assert "X-Token-Signature: v1=feed" in head
    assert "X-Kept-Token: kept" in head
    for name in ("Authorization", "Cookie", "X-Acme-Token", "the URL"):
        assert name in ran.err.partition("masked: ")[2]


@pytest.mark.usefixtures("place")
def test_capture_masks_the_secret_of_a_source_wherever_it_stands(sender, hookonce):
    sender(post("/hooks/stripe/in-the-path", Stripe_Signature="t=1,v1=0", X_Odd="whsec_of_the_tests!"))

    out = hookonce("capture", "stripe", "--port", sender.port).out

    assert b"X-Odd: [secret]" in out
    assert b"POST /hooks/stripe/[secret] HTTP/1.1" in out
    assert b"t=1,v1=0" in out


def test_capture_writes_several_deliveries_into_a_folder(place, sender, hookonce):
    (place / "deliveries").mkdir()
    (place / "deliveries/acme-1.http").write_text("here already")
    sender(post(body=b"a"), post(body=iter([b"b", b"c" * 2000])), ("GET", "/", {}), ("PUT", "/x", {}))

    ran = hookonce("capture", "acme", "--port", sender.port, "--count", "3", "--output", "deliveries")

    assert ran.code == 0, ran.err
    read = [http_file.read((place / f"deliveries/acme-{n}.http").read_bytes()) for n in (2, 3, 4)]
    assert [(each.method, each.body) for each in read] == [
        ("POST", b"a"),
        ("POST", b"b" + b"c" * 2000),
        ("PUT", b""),
    ]
    assert "transfer-encoding" not in read[1].lowered()
    assert (place / "deliveries/acme-1.http").read_text() == "here already"


def test_capture_says_where_it_wrote_one_delivery(place, sender, hookonce):
    sender(post())

    ran = hookonce("capture", "acme", "--port", sender.port, "--output", "order.http")

    assert ran.out == b""
    assert "in order.http" in ran.err
    assert http_file.read((place / "order.http").read_bytes()).body == BODY


@pytest.mark.usefixtures("place")
def test_capture_shows_a_person_where_to_send(hookonce):
    ran = hookonce("capture", "acme", "--port", "0", "--wait", "0")

    assert ran.code == 1
    assert re.search(r"http://127\.0\.0\.1:\d+/hooks/acme", ran.err)
    assert "nothing came within 0 s" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["../acme"], 2, "can't be a file's name"),
        (["acme", "--count", "2"], 2, "--output deliveries/"),
        (["acme", "--output", "hookonce.toml"], 1, "hookonce.toml exists"),
        (["acme", "--output", "hookonce.toml/acme.http"], 1, "choose another --output"),
    ],
)
@pytest.mark.usefixtures("place")
def test_capture_says_what_is_wrong(hookonce, arguments, code, said):
    ran = hookonce("capture", *arguments)

    assert ran.code == code
    assert said in ran.err


@pytest.mark.usefixtures("place")
def test_capture_says_which_port_is_taken(hookonce):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        ran = hookonce("capture", "acme", "--port", taken.getsockname()[1])

    assert ran.code == 1
    assert "choose another with --port" in ran.err


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
    ],
)
@pytest.mark.usefixtures("place")
def test_capture_goes_on_after_what_it_can_not_read(hookonce, free_port, sender, request_bytes, status):
    answers = []

    def junk():
        with connected(free_port) as connection:
            connection.sendall(request_bytes)
            answers.append(connection.recv(1000))
        sender(post(body=b"good"))

    thread = threading.Thread(target=junk)
    thread.start()
    ran = hookonce("capture", "acme", "--port", free_port)
    thread.join(30)

    assert ran.out.endswith(b"\n\ngood")
    assert status in answers[0].split(b"\r\n")[0]
