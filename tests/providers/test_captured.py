import string
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookonce.providers.kit import http_file
from hookonce.providers.kit.conformance import cases

RAW = b"POST /hooks/acme?a=b HTTP/1.1\nHost: in.example\nX-A: 1\nx-a: 2\n\n"
NAMES = st.text(string.ascii_letters + string.digits + "-", min_size=1, max_size=20).filter(
    lambda name: name.lower() != http_file.CAPTURED_AT
)
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_categories=["Cc"]), max_size=40)
MOMENT = datetime(2026, 1, 1, 0, 0, 0, 123000, UTC)


@given(
    headers=st.lists(st.tuples(NAMES, VALUES.map(str.strip))),
    body=st.binary(max_size=200),
    at=st.none() | st.just(MOMENT),
)
def test_captured_request_survives_its_file_byte_for_byte(headers, body, at):
    request = http_file.Captured("POST", "/hooks/a?b=c", headers, body, at)

    assert http_file.read(http_file.written(request)) == request


@pytest.mark.parametrize("value", ["", "soon", "2020-01-01T00:00:00Z"])
@pytest.mark.parametrize("name", [http_file.CAPTURED_AT, "Hookonce-Captured-At"])
def test_captured_request_is_of_the_time_that_we_say(name, value):
    request = http_file.Captured("POST", "/", [(name, value), ("A", "b")], b"", MOMENT)

    read = http_file.read(http_file.written(request))

    assert (read.at, read.headers) == (MOMENT, [("A", "b")])


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("body", [b"", b"\n\r\n\n", b"a\r\n\r\nb", b"\x00\xff"])
def test_captured_request_reads_either_line_end(end, body):
    read = http_file.read(RAW.replace(b"\n", end) + body)

    assert (read.body, read.url) == (body, "https://in.example/hooks/acme?a=b")
    assert read.lowered() == {"host": "in.example", "x-a": "1,2"}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "the first line is not a request"),
        (b"\x00\xff", "the first line is not a request"),
        (b'POST /\n{"id": 1}', "line 2 is not a header"),
        (b"POST /\nhookonce-captured-at: soon\n\n", "expected a time"),
    ],
)
def test_captured_request_says_which_line_is_wrong(raw, said):
    with pytest.raises(ValueError, match=said):
        http_file.read(raw)


def test_masked_credentials_are_the_facts_secret_again():
    read = http_file.read(b"POST / HTTP/1.1\nauthorization: Basic [secret]\nx-token: [secret]\n\n")

    assert read.lowered("user:pass") == {"authorization": "Basic dXNlcjpwYXNz", "x-token": "user:pass"}


@pytest.mark.parametrize(
    ("name", "facts"), [("a.toml", 'secret = "s3cret"'), ("a.json", '{"secret": "s3cret"}')]
)
def test_case_is_a_delivery_with_facts_beside_it(tmp_path, name, facts):
    head = RAW.removesuffix(b"\n") + b"hookonce-captured-at: 2026-01-01T00:00:00.123Z\n\n"
    (tmp_path / "a.http").write_bytes(head + b"{}")
    (tmp_path / name).write_text(facts)

    [case] = cases(tmp_path, "github")

    assert (case.secret, case.delivery.body, case.now) == ("s3cret", b"{}", MOMENT)
    assert case.delivery.url == "https://in.example/hooks/acme?a=b"


@pytest.mark.parametrize("facts", [None, "", "secret = 1"])
def test_case_without_a_secret_says_what_to_write(tmp_path, facts):
    (tmp_path / "a.http").write_bytes(RAW)
    if facts is not None:
        (tmp_path / "a.toml").write_text(facts)

    with pytest.raises(ValueError, match=r"write a\.toml with at least `secret"):
        cases(tmp_path, "github")
