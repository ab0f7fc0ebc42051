"""The inbox inside Flask, FastAPI and Django, under each server that people run them with."""

import gzip
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support import raw_http
from tests.support.applications import MAX_BODY, SECRET, SERVERS, Project, paid


@pytest.fixture(scope="module", params=SERVERS)
def served(request, tmp_path_factory, fresh_database, fresh_redis):
    name, command = SERVERS[request.param]
    directory = tmp_path_factory.mktemp("mounted")
    with fresh_database() as database_url, fresh_redis() as redis_url:
        project = Project(name, directory, database_url, redis_url)
        project.make_tables()
        with project.serving(command) as running:
            yield running


def events(served, event_id):
    return served.project.query(
        f"SELECT type, deliveries FROM hookonce.event_states WHERE event_id = '{event_id}'"  # noqa: S608  ours
    )


def test_delivery_is_kept_once_however_often_it_comes(served):
    body = paid("again")

    answers = [served.deliver(body) for _ in range(3)]

    assert [(each.status, each.document["status"]) for each in answers] == [
        (200, "accepted"),
        (200, "duplicate"),
        (200, "duplicate"),
    ]
    assert [row[0] for row in events(served, "evt_again")] == ["invoice.paid"]


def test_copies_at_the_same_moment_make_one_event(served):
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: served.deliver(paid("twin", created=1)), range(24)))

    assert [each.status for each in answers] == [200] * 24
    assert sum(each.document["status"] == "accepted" for each in answers) == 1
    assert len(events(served, "evt_twin")) == 1


def test_events_at_the_same_moment_are_all_kept(served):
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: served.deliver(paid(f"many_{n}")), range(60)))

    assert {each.status for each in answers} == {200}
    found = served.project.query(
        "SELECT count(*) FROM hookonce.event_states WHERE event_id LIKE 'evt_many_%'"
    )
    assert found == [(60,)]


def test_forged_delivery_is_refused(served):
    answer = served.deliver(paid("forged"), secret=SECRET + "x")

    assert (answer.status, answer.code) == (401, "bad_signature")
    assert events(served, "evt_forged") == []


def test_unknown_source_is_refused(served):
    answer = served.deliver(paid("lost"), target="/hooks/nobody")

    assert (answer.status, answer.code) == (404, "unknown_source")


def test_other_method_is_refused(served):
    request = raw_http.request("PUT", "/hooks/stripe", [("Host", "localhost")], b"{}")

    answer = served.exchange(request)

    assert (answer.status, answer.code) == (405, "bad_method")


@pytest.mark.parametrize("is_chunked", [False, True])
def test_body_that_is_too_large_is_refused(served, is_chunked):
    body = b"x" * (MAX_BODY + 1)
    headers = [("Host", "localhost")]
    if is_chunked:
        headers.append(("Transfer-Encoding", "chunked"))

    answer = served.exchange(
        raw_http.request(headers=headers, body=raw_http.chunked(body) if is_chunked else body)
    )

    assert (answer.status, answer.code) == (413, "too_large")


def test_chunked_body_is_read_whole(served):
    signed = served.signed(body := paid("chunks"))
    head, _, _ = signed.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]

    answer = served.exchange(
        b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b""]) + raw_http.chunked(body[:9], body[9:])
    )

    assert (answer.status, answer.document["status"]) == (200, "accepted")


@pytest.mark.parametrize("is_chunked", [False, True])
def test_delivery_that_offers_an_upgrade_is_taken_or_is_to_come_again(served, is_chunked):
    name = f"upgrade_{is_chunked}"
    head, _, body = served.signed(paid(name)).partition(b"\r\n\r\n")
    head += b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"
    if is_chunked:
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
        head, body = b"\r\n".join([*lines, b"Transfer-Encoding: chunked"]), raw_http.chunked(body)

    answer = served.exchange(head + b"\r\n\r\n" + body)

    is_dropped = answer.status == 503 and "uvicorn --http h11" in served.project.said
    assert answer.status == 200 or is_dropped
    assert len(events(served, f"evt_{name}")) == (answer.status == 200)


def test_body_that_ends_early_is_not_kept(served):
    signed = served.signed(paid("cut"))

    answer = served.exchange(signed[:-5], half_close=True)

    assert answer is None or answer.status == 400
    assert events(served, "evt_cut") == []


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress], ids=["gzip", "deflate"])
def test_compressed_body_is_taken(served, pack):
    body = pack(paid(f"packed_{pack.__name__}_{pack.__module__}"))
    coding = b"Content-Encoding: gzip" if pack is gzip.compress else b"Content-Encoding: deflate"

    answer = served.exchange(served.signed(body).replace(b"\r\n", b"\r\n" + coding + b"\r\n", 1))

    assert (answer.status, answer.document["status"]) == (200, "accepted")


def test_bomb_is_refused(served):
    body = zlib.compress(bytes(200 * MAX_BODY))[:MAX_BODY]

    answer = served.exchange(served.signed(body).replace(b"\r\n", b"\r\nContent-Encoding: deflate\r\n", 1))

    assert (answer.status, answer.code) == (413, "too_large")


def test_other_coding_is_refused(served):
    headers = [("Host", "localhost"), ("Content-Encoding", "br")]

    answer = served.exchange(raw_http.request(headers=headers, body=b"x"))

    assert (answer.status, answer.code) == (415, "unsupported_encoding")


def test_application_answers_everything_else(served):
    path = "/admin/login/" if served.project.name == "django" else "/"

    assert served.get(path).status == 200
    assert served.get("/nowhere").status == 404


def test_nothing_of_a_delivery_is_in_the_log(served):
    served.deliver(paid("quiet", secret_of_the_body="4711-0815"))
    served.deliver(paid("quiet", secret_of_the_body="4711-0815"), secret="whsec_wrong")

    assert "4711-0815" not in served.project.said
    assert SECRET not in served.project.said
    assert "Traceback" not in served.project.said
