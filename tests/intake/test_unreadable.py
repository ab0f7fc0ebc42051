"""A delivery that is genuine and can't be read is kept whole, handled by nobody, and read anew once it can be."""

import contextlib
import copy
import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from hookonce.jobs.alerts.conditions import ledger_conditions
from hookonce.providers import UNREADABLE, Event
from hookonce.providers.kit import many_events, one_event, registry
from hookonce.providers.kit.registry import load
from hookonce.receiver.intake.rereading import Rereader
from hookonce.receiver.intake.verification import Verifier
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries import event_lookup
from hookonce.receiver.ledger.replay.events import ReplayOutcome, replay
from hookonce.receiver.source import Source
from tests.support.captured import captured_of
from tests.support.for_each import for_each
from tests.support.in_process import Receiver

KEY = "whsec_of_the_unreadable"
ODD = {
    "a NaN": b"NaN",
    "a number beyond double precision": b"1e400",
    "5,000 digits": b"9" * 5000,
    "a byte of Latin-1": b'"caf\xe9"',
    "lists in lists": b"[" * 100_000 + b"]" * 100_000,
}
READ_TO_BE_SIGNED = {"adyen", "amazon_sns", "hygraph", "mailgun"}
"""Their `deliver` reads the body to put the signature there, and so it signs no body that it can't read."""
CLAIMS = "jwt"
"""Its body is a token's claims, which are read before the token is verified."""
NOT_VERIFIED = {
    ("adyen", "notificationItems"),  # without them there is no signature
    ("adyen", "notificationItems.0.NotificationRequestItem"),
    ("mailchannels", "0.customer_handle"),  # one key signs for all customers
}
PROBES = {("discord", "event"), ("xero", "events")}
"""Without these a delivery looks like a probe, and is answered as one."""


class NoNotes:
    def record_secret_use(self, *_):
        pass


def events_of(case, delivery):
    """The events that a receiver would store of a delivery, None for a probe."""
    verify, handshake = case.provider.verify, case.provider.handshake
    provider = replace(
        case.provider,
        takes_keys=False,
        verify=partial(verify, **case.fetched),
        handshake=handshake and partial(handshake, **case.fetched),
    )
    source, verifier = Source("odd", provider, (case.secret,)), Verifier(25 << 20)
    if verifier.is_probe(source, delivery):
        return None
    return verifier.authenticate(source, delivery, case.now)[1]


def json_cases(name):
    """The captured deliveries of a sender whose body is a JSON object, or a list of some, and can be signed anew."""
    for case in captured_of(name):
        if not case.is_genuine or not case.signing:
            continue
        with contextlib.suppress(ValueError):
            found = json.loads(case.delivery.body)
            if isinstance(found, dict) or (found and isinstance(found[0], dict)):
                yield case, found


def with_value(body, value):
    """The body with one more key, before the first of its first object."""
    before, _, rest = body.partition(b"{")
    return before + b'{"hookonce_odd":' + value + (b"" if rest.lstrip()[:1] == b"}" else b",") + rest


def paths(data, before=()):
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*before, key)
            yield from paths(value, (*before, key))
    elif isinstance(data, list) and data:
        yield from paths(data[0], (*before, 0))


def changed(data, path, *, is_renamed):
    """The body in which one key is null, or has another name."""
    made = copy.deepcopy(data)
    there = made
    for step in path[:-1]:
        there = there[step]
    if is_renamed:
        there[f"{path[-1]}_v2"] = there.pop(path[-1])
    else:
        there[path[-1]] = None
    return json.dumps(made, separators=(",", ":")).encode()


@for_each(lambda: registry.names(()), parts=2)
def test_genuine_delivery_with_an_odd_value_is_never_refused(name):
    for case, _ in json_cases(name):
        for what, value in ODD.items():
            if name == CLAIMS or (name in READ_TO_BE_SIGNED and value not in {b"NaN", b"1e400"}):
                continue
            delivery = case.signed(with_value(case.delivery.body, value))

            assert events_of(case, delivery), f"{what} in {case}"


@for_each(lambda: registry.names(()), parts=4)
def test_genuine_delivery_without_a_key_is_never_refused(name):
    for case, data in json_cases(name):
        for path in paths(data):
            told = (name, ".".join(map(str, path)))
            for is_renamed in (True, False) if told not in NOT_VERIFIED else ():
                delivery = case.signed(changed(data, path, is_renamed=is_renamed))

                assert events_of(case, delivery) is not None or told in PROBES, f"{told} of {case}"


@pytest.fixture
def receiver(database_url, redis_url):
    with contextlib.closing(Receiver(database_url, redis_url)) as running:
        running.add("shop", load("shopify"), KEY)
        yield running


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as opened:
        yield opened


def send(receiver, body, name="shop", **headers):
    provider = receiver.sources[name].provider
    made = provider.delivery(body, KEY, receiver.now, url="https://hooks.example.com/hooks/shop")
    return receiver.send(name, replace(made, headers={**made.headers, **headers}))


def stripe(receiver, read=None):
    """Add a source of Stripe's, whose adapter reads events by `read`."""
    provider = load("stripe")
    receiver.add("stripe", replace(provider, events=read) if read else provider, KEY)
    return receiver.sources["stripe"]


BY_OBJECT = one_event(id="$.event.id", type="$.event.type")
"""What Stripe might send one day."""
RENAMED = b'{"event": {"id": "evt_7", "type": "invoice.paid"}}'
STATES = "SELECT id, event_id, type, status FROM hookonce.event_states ORDER BY id"


def test_unreadable_delivery_is_kept_whole_with_its_reason_and_queued_for_nobody(receiver):
    stripe(receiver)

    assert send(receiver, RENAMED, "stripe").status_code == 200

    [(number, event_id, kind, status)] = receiver.query(STATES)
    assert (kind, status) == (UNREADABLE, "dead")
    assert event_id.startswith(hashlib.sha256(RENAMED).hexdigest())
    assert receiver.query("SELECT body, is_element FROM hookonce.bodies") == [(RENAMED, False)]
    assert receiver.query("SELECT event, handler, error FROM hookonce.failures") == [
        (number, "", "bad_body: $.id is missing")
    ]
    assert receiver.query("SELECT count(*) FROM hookonce.queue") == [(0,)]


def test_unreadable_delivery_that_comes_again_is_a_duplicate_within_the_retry_horizon(receiver):
    horizon = stripe(receiver).provider.retry_horizon
    assert send(receiver, RENAMED, "stripe").json["status"] == "accepted"

    receiver.now += horizon / 2
    assert send(receiver, RENAMED, "stripe").json["status"] == "duplicate"
    receiver.now += 2 * horizon
    assert send(receiver, RENAMED, "stripe").json["status"] == "accepted"


def test_id_that_can_be_read_is_told_and_stays_free_for_the_readable_event(receiver):
    stripe(receiver)
    send(receiver, b'{"id": "evt_7", "type": null, "amount": NaN}', "stripe")

    [(error,)] = receiver.query("SELECT error FROM hookonce.failures")
    assert error.endswith("its id reads evt_7")
    assert send(receiver, b'{"id": "evt_7", "type": "invoice.paid"}', "stripe").json["status"] == "accepted"


@pytest.mark.parametrize("odd", [b"evt_\\u0000", b"evt_\\ud800", b"evt_\xe9", b"x" * 1_000_000], ids=len)
def test_whatever_stands_in_its_id_an_unreadable_delivery_is_stored(receiver, odd):
    stripe(receiver)

    assert send(receiver, b'{"id": "%s", "amount": NaN}' % odd, "stripe").status_code == 200

    [(length,)] = receiver.query("SELECT length(error) FROM hookonce.failures")
    assert length < 300


def test_forged_and_unverified_deliveries_are_refused_as_before(receiver):
    stripe(receiver)
    forged = replace(
        load("stripe").delivery(RENAMED, "whsec_of_another", receiver.now, url=""), body=RENAMED[:-1] + b" }"
    )
    receiver.add("anybody", load("gong"), unauthenticated=True)

    assert receiver.send("stripe", forged).json["code"] == "bad_signature"
    assert receiver.send("anybody", replace(forged, body=b"{")).json["code"] == "bad_body"
    assert receiver.query(STATES) == []


def replayed(receiver, connection, *events, store=True):
    with contextlib.closing(Rereader(receiver.settings, store=store)) as reread:
        return [each.fate for each in replay(connection, events, "ann", reread=reread)]


def test_replay_reads_anew_and_points_to_the_event(receiver, connection):
    stripe(receiver)
    send(receiver, RENAMED, "stripe")
    [(unread, *_)] = receiver.query(STATES)
    before = receiver.query("SELECT * FROM hookonce.events WHERE id = %s", unread)

    assert replayed(receiver, connection, unread) == [ReplayOutcome.UNREADABLE]
    stripe(receiver, BY_OBJECT)
    assert replayed(receiver, connection, unread) == [ReplayOutcome.READ]

    [old, (new, event_id, kind, status)] = receiver.query(STATES)
    assert (old[3], event_id, kind, status) == ("done", "evt_7", "invoice.paid", "received")
    assert receiver.query("SELECT * FROM hookonce.events WHERE id = %s", unread) == before
    assert receiver.query(
        "SELECT cycle, status, is_last, result FROM hookonce.runs WHERE event = %s ORDER BY cycle", unread
    ) == [(1, "dead", False, None), (2, "done", True, {"read_as": [new]})]
    assert replayed(receiver, connection, unread) == [ReplayOutcome.DONE]


def test_unreadable_event_is_found_by_the_senders_id_that_its_reason_names(receiver, connection):
    stripe(receiver)
    send(receiver, b'{"id": "evt_7", "type": null, "amount": NaN}', "stripe")
    [(unread, *_)] = receiver.query(STATES)

    assert event_lookup.find(connection, "evt_7") == unread
    assert event_lookup.find(connection, "evt_") is None


def test_replay_finds_a_duplicate_where_the_senders_retry_came_meanwhile(receiver, connection):
    stripe(receiver)
    send(receiver, RENAMED, "stripe")
    stripe(receiver, BY_OBJECT)
    send(receiver, RENAMED, "stripe")
    (unread, *_), (retried, *_) = receiver.query(STATES)

    assert replayed(receiver, connection, unread) == [ReplayOutcome.READ]

    assert len(receiver.query(STATES)) == 2
    [(result,)] = receiver.query("SELECT result FROM hookonce.runs WHERE event = %s AND is_last", unread)
    assert result == {"read_as": [retried]}


def test_replay_points_to_a_retry_that_has_another_id(receiver, connection):
    def read(delivery):
        data = json.loads(delivery.body)["event"]
        return [Event(data["id"], data["type"], data, retry_ids=(data["first"],))]

    stripe(receiver, read)
    body = b'{"event": {"id": "%s", "first": "a", "type": "t"}}'
    send(receiver, body % b"a", "stripe")
    stripe(receiver)
    send(receiver, body % b"b", "stripe")
    (known, *_), (unread, *_) = receiver.query(STATES)
    connection.execute(
        "UPDATE hookonce.events SET fingerprint = (SELECT fingerprint FROM hookonce.events WHERE id = %s)",
        [unread],
    )
    stripe(receiver, read)

    assert replayed(receiver, connection, unread) == [ReplayOutcome.READ]

    [(result,)] = receiver.query("SELECT result FROM hookonce.runs WHERE event = %s AND is_last", unread)
    assert result == {"read_as": [known]}


def test_dry_run_of_a_replay_stores_nothing(receiver, connection):
    stripe(receiver)
    send(receiver, RENAMED, "stripe")
    [(unread, *_)] = receiver.query(STATES)
    stripe(receiver, BY_OBJECT)

    with connection.transaction(force_rollback=True):
        assert replayed(receiver, connection, unread, store=False) == [ReplayOutcome.READ]

    assert [row[3] for row in receiver.query(STATES)] == ["dead"]


def test_element_of_a_batch_is_read_anew_as_a_batch_of_one(receiver, connection):
    by = {"items": "$.events", "type": "$.type"}
    stripe(receiver, many_events(id="$.id", **by))
    send(receiver, b'{"events": [{"id": "a", "type": "t"}, {"key": "b", "type": "t"}]}', "stripe")
    unread = next(row[0] for row in receiver.query(STATES) if row[3] == "dead")
    provider = replace(load("stripe"), events=many_events(id="$.key", **by))
    receiver.add("stripe", replace(provider, batch=provider.events.batch), KEY)

    assert replayed(receiver, connection, unread) == [ReplayOutcome.READ]
    assert {row[1] for row in receiver.query(STATES)} >= {"a", "b"}


def test_unreadable_deliveries_are_counted_and_raise_an_alert(receiver, connection):
    stripe(receiver)
    send(receiver, RENAMED, "stripe")
    receiver.close()

    found = ledger_conditions(connection, receiver.settings, {}, receiver.now, receiver.now)
    assert "hookonce replay --type unreadable --source stripe" in found["unreadable", "stripe"]
    assert ("dead_runs", "stripe") not in found


def test_no_horizon_is_no_reason_to_refuse(receiver):
    never = replace(load("stripe"), retry_horizon=timedelta(0))
    receiver.add("stripe", never, KEY)

    assert send(receiver, RENAMED, "stripe").status_code == 200
