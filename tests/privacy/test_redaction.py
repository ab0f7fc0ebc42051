import contextlib
import json
from datetime import UTC, datetime

import pytest

from hookonce.providers.kit.reading.json_paths import parse
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import OFF
from hookonce.receiver.privacy.at_rest import imported
from hookonce.receiver.privacy.masking import kept_headers
from hookonce.receiver.privacy.redaction import redacted
from hookonce.receiver.source import Source
from tests.support.captured import captured
from tests.support.for_each import for_each
from tests.support.in_process import PUBLIC_URL, Receiver
from tests.support.new_event import new_event

FORM = {"content-type": "application/x-www-form-urlencoded"}
SECRET = "whsec_of_the_tests"


def without(body, *paths, headers=()):
    return redacted(body, [parse(path) for path in paths], dict(headers)).decode()


@pytest.mark.parametrize(
    ("body", "paths", "kept"),
    [
        (b'{"a": {"b": 1}, "c": 2}', ["$.a.b"], '{"a":{"b":"[redacted]"},"c":2}'),
        (b'{"a": [{"b": 1}, {"b": 2}]}', ["$.a[*].b"], '{"a":[{"b":"[redacted]"},{"b":"[redacted]"}]}'),
        (b'{"a": [1, 2, 3]}', ["$.a[1]"], '{"a":[1,"[redacted]",3]}'),
        (b'{"a": {"b": 1}}', ["$.a", "$.a.b"], '{"a":"[redacted]"}'),
        (b'{"a": 1}', ["$.b", "$.a.c", "$.a[0]"], '{"a":1}'),
        (b'{"a": 1}', ["$"], '"[redacted]"'),
        (b'{"a": 9, "a": 1}', ["$.b"], '{"a":1}'),
        (b'{"n": 10.10, "m": 1e400, "k": 0.1234567890123456789, "a": 1}', ["$.a"], None),
        ('{"é": "\N{SNOWMAN}", "a": 1}'.encode(), ["$.a"], '{"é":"\N{SNOWMAN}","a":"[redacted]"}'),
        (b'{"half": "\\ud83d", "a": 1}', ["$.a"], '{"half":"\\ud83d","a":"[redacted]"}'),
        (b'{"Message": "{\\"a\\": 1}"}', ["$.Message.a"], '{"Message":"{\\"a\\":\\"[redacted]\\"}"}'),
        (b'{"b": NaN, "c": -Infinity, "a": 1}', ["$.a"], '{"b":NaN,"c":-Infinity,"a":"[redacted]"}'),
        (b'{"n": ' + b"9" * 5000 + b', "a": 1}', ["$.a"], '{"n":' + "9" * 5000 + ',"a":"[redacted]"}'),
        (b'{"Message": "{\\"a\\": 1, "}', ["$.Message.a"], '{"Message":"[redacted]"}'),
        (b'{"Message": "\\ufeff{\\"a\\": 1}"}', ["$.Message.a"], '{"Message":"[redacted]"}'),
        (b'{"Message": "no JSON"}', ["$.Message.a"], '{"Message":"no JSON"}'),
        (b'[{"a": 1}]', ["$[*].a"], '[{"a":"[redacted]"}]'),
    ],
)
def test_redaction_replaces_what_is_at_its_paths(body, paths, kept):
    expected = kept or '{"n":10.10,"m":1e400,"k":0.1234567890123456789,"a":"[redacted]"}'

    assert without(body, *paths) == expected


@pytest.mark.parametrize(
    ("body", "paths", "kept"),
    [
        (b"From=%2B49&Body=hi&From=2", ["$.From"], "From=%5Bredacted%5D&Body=hi&From=%5Bredacted%5D"),
        (b"a[b]=1&c=", ["$['a[b]']"], "a%5Bb%5D=%5Bredacted%5D&c="),
        (b'payload={"u":"x"}', ["$.payload.u"], "payload=%7B%22u%22%3A%22%5Bredacted%5D%22%7D"),
    ],
)
def test_redaction_reads_forms(body, paths, kept):
    assert without(body, *paths, headers=FORM) == kept


@pytest.mark.parametrize(
    "body", [b"<xml>4242</xml>", b"\xff\xfe", b"[" * 100_000, b"", b'{"a": 4242'], ids=repr
)
def test_redaction_keeps_nothing_of_what_it_can_not_read(body):
    assert without(body, "$.a") == '"[redacted]"'
    assert without(b"%ff=4242", "$.a", headers=FORM) == '"[redacted]"'


@pytest.fixture
def receiver(database_url, redis_url):
    with contextlib.closing(Receiver(database_url, redis_url)) as running:
        yield running


def send(receiver, provider, secret, body):
    name = provider.name
    url = f"{PUBLIC_URL}/hooks/{name}"
    return receiver.send(name, provider.delivery(body, secret, datetime.now(UTC), url=url))


def test_redacted_value_is_nowhere_in_the_database(receiver):
    stripe = load("stripe", ())
    receiver.add("stripe", stripe, SECRET, redact=(parse("$.data.card"),))
    body = b'{"id": "evt_%s", "type": "a", "data": {"card": "visa-%s"}}'

    send(receiver, stripe, SECRET, body % (b"1", b"first"))
    send(receiver, stripe, SECRET, body % (b"1", b"other"))
    send(receiver, stripe, "whsec_wrong", body % (b"2", b"refused"))
    receiver.close()

    tables = receiver.query(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p') "
        "AND relnamespace = 'hookonce'::regnamespace"
    )
    everything = "".join(str(receiver.query(f"TABLE {name}")) for (name,) in tables)
    assert "evt_1" in everything
    assert "visa" not in everything
    assert receiver.query("SELECT count(*) FROM hookonce.conflicts") == [(1,)]
    assert receiver.query("SELECT count(*), max(length(body_prefix)) FROM hookonce.rejected") == [(1, 0)]


def test_redelivery_of_a_redacted_event_is_a_duplicate_without_conflict(receiver):
    stripe = load("stripe", ())
    receiver.add("stripe", stripe, SECRET, redact=(parse("$.card"),))
    body = b'{"id": "evt_1", "type": "a", "card": "4242"}'

    answers = [send(receiver, stripe, SECRET, body).json["status"] for _ in range(2)]

    assert answers == ["accepted", "duplicate"]
    assert receiver.query("SELECT count(*) FROM hookonce.conflicts") == [(0,)]


def test_elements_of_a_batch_are_redacted_each(receiver):
    provider, secret, body = a_batch()
    receiver.add(provider.name, provider, secret, redact=(parse("$.email"),))

    send(receiver, provider, secret, body)

    kept = [json.loads(row[0]) for row in receiver.query("SELECT body FROM hookonce.bodies ORDER BY event")]
    assert [element["email"] for element in kept] == ["[redacted]"] * 2


def a_batch():
    provider = load("hubspot", ())
    element = {"subscriptionType": "a", "portalId": 1, "occurredAt": 1_700_000_000_000, "email": "x@y"}
    batch = [element | {"eventId": 1, "objectId": 1}, element | {"eventId": 2, "objectId": 2}]
    return provider, "hub secret", json.dumps(batch).encode()


def test_imported_event_is_redacted_as_its_source_here_says():
    source = Source("stripe", load("stripe", ()), (SECRET,), redact=(parse("$.card"),))
    event = new_event("evt_1", b'{"card": "4242"}')

    known, unknown = (imported(event, sources, OFF).body for sources in ({"stripe": source}, {}))

    assert (known, unknown) == (b'{"card":"[redacted]"}', b'{"card": "4242"}')


def test_redact_path_that_is_none_is_a_mistake(tmp_path):
    path = tmp_path / "hookonce.toml"
    path.write_text('[sources.stripe]\nsecrets = ["env:S"]\nredact = ["data.card", "$.ok"]\n')

    with pytest.raises(ConfigError, match=r"redact: entry 1: 'data.card' is not a path"):
        load_settings({"HOOKONCE_CONFIG": str(path), "S": SECRET})


@for_each(lambda: [case for case in captured() if case.provider.body_is_unsigned and case.secret])
def test_token_of_a_refused_delivery_is_not_kept(case):
    kept = kept_headers(case.delivery.headers, Source("a", case.provider, ("another secret",)))

    assert case.secret not in str(kept)


@pytest.mark.parametrize(
    "name",
    [
        "x-original-uri",
        "referer",
        "x-auth",
        "x-functions-key",
        "ocp-apim-subscription-key",
        "cf-access-jwt-assertion",
        "proxy-authorization",
    ],
)
def test_header_that_may_hold_a_credential_is_not_kept(name):
    source = Source("a", load("github", ()), ("secret",))

    assert kept_headers({name: "value"}, source) == {name: "[secret]"}


@pytest.mark.parametrize(
    "name", ["x-pusher-key", "idempotency-key", "messagebird-signature-jwt", "x-event-key"]
)
def test_header_that_is_no_credential_is_kept(name):
    assert kept_headers({name: "value"}, Source("a", load("github", ()), ("secret",))) == {name: "value"}
