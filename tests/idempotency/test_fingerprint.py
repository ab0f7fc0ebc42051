import pytest

from hookonce.receiver.idempotency.fingerprint import Request, canonical

JSON = "application/json"


def of(body, content_type=JSON, **more):
    raw = body if isinstance(body, bytes) else body.encode()
    return Request("POST", "/payments", raw, content_type, **more).fingerprint()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": [2, {"c": 3, "d": 4}]}', '{"b":[2,{"d":4,"c":3}],"a":1}'),
        ("[1, 1.0, 10e-1, 0.1e1, 1.000]", "[1.0,1,1,1,1]"),
        ("[100, 1e2, -0, 0.0]", "[1E+2,100,0,0e5]"),
        ('["é", "/"]', r'["\u00e9", "\/"]'),
        ("[12345678901234567890.5]", "[12345678901234567890.50]"),
    ],
)
def test_json_that_says_the_same_is_the_same(one, other):
    assert of(one) == of(other)
    assert of(one, "application/vnd.shop+json; charset=utf-8") == of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1, 2]", "[2, 1]"),
        ("[1]", '["1"]'),
        ("[1]", "[-1]"),
        ("[0.1]", "[0.10000000000000001]"),
        ("[9007199254740993]", "[9007199254740992]"),
        ("[[1], 2]", "[[1, 2]]"),
        ("[1, 2]", "[12]"),
        ("{}", "[]"),
        ("[null]", "[false]"),
        ('{"a": null}', "{}"),
        ('{"a": 1, "a": 2}', '{"a": 2}'),
        ("[NaN]", "[null]"),
        ("[1", "[1 "),
        ("", " "),
    ],
)
def test_what_says_something_else_is_another(one, other):
    assert of(one) != of(other)


def test_body_of_another_kind_counts_by_its_bytes():
    assert of("[1, 2]", "text/plain") != of("[1,2]", "text/plain")


def test_every_part_of_a_request_counts():
    requests = [
        Request("POST", "/a"),
        Request("PUT", "/a"),
        Request("POST", "/b"),
        Request("POST", "/a", b"x"),
        Request("POST", "/a", query="x"),
        Request("POST", "/a", headers={"x": "1"}),
        Request("POST", "/a", headers={"x": "2"}),
        Request("POST", "/a", version="x"),
    ]

    assert len({each.fingerprint() for each in requests}) == len(requests)
    assert Request("post", "/a", headers={"A": "1", "b": "2"}) != requests[0]


def test_headers_count_whatever_their_case_and_order():
    one, other = ({"Tenant": "7", "Currency": "EUR"}, {"currency": " EUR", "tenant": "7 "})

    assert of("{}", headers=one) == of("{}", headers=other)


@pytest.mark.parametrize("depth", [65, 100_000])
def test_body_that_is_too_deep_counts_by_its_bytes(depth):
    body = b"[" * depth + b"]" * depth

    assert canonical(body) is None
    assert of(body) != of(body + b" ")


def test_number_with_a_million_digits_is_no_work():
    assert of(b"[" + b"9" * 1_000_000 + b"]") != of(b"[" + b"9" * 999_999 + b"8]")
    assert of(b"[1e1000000000]") != of(b"[1e1000000001]")
