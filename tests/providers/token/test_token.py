import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.registry import load
from tests.support.senders import NOW

PARTNER = {"in": "header:X-Token", "id": "$.id", "type": "$.type"}
SECRET = "token-of-tests-0123456789"


@pytest.mark.parametrize(
    ("options", "mistakes"),
    [
        ({}, ["in is required", "id is required", "type is required"]),
        (PARTNER | {"inn": "x"}, ["'inn' is not an option, did you mean 'in'?"]),
        (PARTNER | {"in": "cookie:x"}, ["in is 'cookie:x', expected 'header:Name', 'bearer'"]),
        (PARTNER | {"in": "header:"}, ["in is 'header:', expected"]),
        (PARTNER | {"in": "$.a[*]"}, ["names many places"]),
        (PARTNER | {"in": "bearer", "prefix": "x"}, ["prefix stands before a token in a header"]),
        (PARTNER | {"id": "id"}, ["id is 'id', expected '$.path'"]),
        (PARTNER | {"volatile": ["a"]}, ["'a' is not a path"]),
        (PARTNER | {"period": 0}, ["period is 0, expected whole seconds"]),
        (
            PARTNER | {"challenge": "cookie:x"},
            ["challenge is 'cookie:x', expected 'head', 'get', 'query:name'"],
        ),
        (PARTNER | {"challenge": "$.a[0]"}, ["challenge is '$.a[0]', expected"]),
    ],
)
def test_token_lists_every_mistake_in_its_options(options, mistakes):
    with pytest.raises(ValueError, match="token: ") as wrong:
        load("token", options=options)

    assert [mistake for mistake in mistakes if mistake not in str(wrong.value)] == []


@pytest.mark.parametrize(
    ("where", "secret"),
    [("basic", "no colon"), ("path", "short"), ("path", "a/b" * 10), ("header:X", " "), ("$.token", "")],
)
def test_token_refuses_a_secret_that_can_not_stand_there(where, secret):
    provider = load("token", options=PARTNER | {"in": where})

    with pytest.raises(ValueError, match="the secret is not usable"):
        provider.check_secret(secret)


def posted(body, **said):
    return Delivery("POST", "https://h.example/hooks/a", {"content-type": "application/json"}, body, **said)


@pytest.mark.parametrize("where", ["header:X-Token", "bearer", "query:key", "path", "$.token"])
def test_token_may_end_the_url_where_nothing_else_brings_it(where):
    provider = load("token", options=PARTNER | {"in": where})

    provider.verify(posted(b"{}", path_secret=SECRET), [SECRET], NOW)
    with pytest.raises(Rejected) as refused:
        provider.verify(posted(b"{}", path_secret=SECRET + "x"), [SECRET], NOW)

    assert refused.value.reason == Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("content", "bodies"),
    [
        ("application/json", [b'{"token":"old","a":1}', b'{"a":1,"token":"new"}', b'{"token":"new","a":2}']),
        ("application/x-www-form-urlencoded", [b"token=old&a=1", b"a=1&token=new", b"token=new&a=2"]),
    ],
)
def test_fingerprint_survives_a_change_of_the_token_in_the_body(content, bodies):
    provider = load("token", options={"in": "$.token", "id": "fingerprint", "type": "fixed:x"})

    ids = [provider.events(Delivery("POST", "", {"content-type": content}, body))[0].id for body in bodies]

    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("id_at", "body", "answered"),
    [
        ("$.id", b'{"challenge":"c","token":"t"}', True),
        ("$.id", b'{"challenge":"c","id":"1"}', False),
        ("$.id", b'{"challenge":7}', False),
        ("$.id", b'{"challenge":""}', False),
        ("fingerprint", b'{"challenge":"c"}', True),
        ("fingerprint", b'{"challenge":"c","order":1}', False),
    ],
)
def test_challenge_is_sent_back_only_where_there_is_no_event(id_at, body, answered):
    provider = load("token", options=PARTNER | {"id": id_at, "challenge": "$.challenge"})

    reply = provider.handshake(posted(body), [SECRET])

    assert (reply is not None) == answered


@pytest.mark.parametrize("value", ["", "a b", "a\r\nset-cookie: b", "é", "x" * 201])
def test_challenge_in_a_header_is_one_plain_word(value):
    provider = load("token", options=PARTNER | {"challenge": "header:X-Hook-Secret"})

    reply = provider.handshake(Delivery("POST", "", {"x-hook-secret": value}, b"{}"), [SECRET])

    assert reply is None


def test_token_in_the_body_bounds_what_is_parsed_before_it_is_known():
    in_body, in_header = (load("token", options=PARTNER | {"in": where}) for where in ("$.t", "bearer"))

    assert (in_body.max_body, in_header.max_body) == (1 << 20, None)
    assert not in_body.id_is_signed
    assert in_body.body_is_unsigned


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("header:X-Token", "fixed:one"),
        ("header:X-Token", "header:x-token"),
        ("bearer", "header:Authorization"),
        ("basic", "header:authorization"),
        ("query:key", "query:key"),
        ("$.token", "$.token"),
        ("path", "header:Host"),
    ],
)
def test_token_takes_no_id_that_all_events_have(where, place):
    with pytest.raises(ValueError, match=r'the same .* write id = "fingerprint"'):
        load("token", options=PARTNER | {"in": where, "id": place})

    assert load("token", options=PARTNER | {"in": where, "id": place, "period": 60}).id_period
