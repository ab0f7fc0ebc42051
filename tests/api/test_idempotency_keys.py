import contextlib

import psycopg
import pytest

from hookonce.receiver.api import server
from hookonce.receiver.idempotency import operation
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.records import Claim, Key, LeaseLost, Result, State, Terms

KEY = {"Idempotency-Key": "one"}


def replay(inbox, *events, scope="admin", headers=KEY):
    return inbox.ask("POST", "/replays", {"events": list(events)}, scope=scope, headers=headers)


def test_request_is_done_once_and_its_answer_given_again(inbox):
    (event,) = inbox.deliver("evt_1", status="held")

    first, again = replay(inbox, event), replay(inbox, event)

    assert (again.status_code, again.data) == (first.status_code, first.data)
    assert first.json["outcomes"][0]["fate"] == "released"
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (
        None,
        "true",
    )
    assert inbox.rows("SELECT count(*) FROM hookonce.audit WHERE action = 'release'") == [(1,)]


def test_key_is_the_same_quoted_and_bare(inbox):
    (event,) = inbox.deliver("evt_1")
    replay(inbox, event)

    assert "Idempotency-Replayed" in replay(inbox, event, headers={"Idempotency-Key": '"one"'}).headers


def test_key_of_another_body_is_refused(inbox):
    event, other = inbox.deliver("evt_1", "evt_2")
    replay(inbox, event)

    answer = replay(inbox, other)

    assert (answer.status_code, answer.json["code"]) == (409, "key_reused")


def test_key_belongs_to_its_token(inbox):
    event, other = inbox.deliver("evt_1", "evt_2")
    replay(inbox, event)

    answer = replay(inbox, other, scope="replay")

    assert answer.status_code == 200


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
def test_key_is_refused_unless_it_is_visible_ascii(inbox, key):
    assert replay(inbox, 1, headers={"Idempotency-Key": key}).status_code == 422


def claim(inbox, event):
    """Begin a request as another process would, and do no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresStore, "within", interrupt)
        patch.setattr(operation, "abandon", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            replay(inbox, event)


def interrupt(*_):
    raise KeyboardInterrupt


def cut(*_):
    raise psycopg.OperationalError


def test_request_under_way_is_answered_with_come_back(inbox):
    event, other = inbox.deliver("evt_1", "evt_2")
    claim(inbox, event)

    answer = replay(inbox, event)

    assert (answer.status_code, answer.json) == (202, {"status": "in_progress"})
    assert int(answer.headers["Retry-After"]) > 0
    assert replay(inbox, other).status_code == 409


def test_request_of_a_dead_process_is_taken_over_after_a_minute(inbox):
    (event,) = inbox.deliver("evt_1", status="held")
    claim(inbox, event)
    ((token, owner),) = inbox.rows(
        "UPDATE hookonce.idempotency SET lease_until = lease_until - interval '61 s' RETURNING scope, owner"
    )

    other = replay(inbox, 99)
    answer = replay(inbox, event)

    assert (other.status_code, other.json["code"]) == (409, "key_reused")
    assert answer.json["outcomes"][0]["fate"] == "released"
    late = Claim(Key(token, "one"), b"", owner, Terms())
    with pytest.raises(LeaseLost):
        store(inbox).complete(late, State.COMPLETED, Result(200))


def store(inbox):
    return PostgresStore(lambda: contextlib.nullcontext(inbox.connection))


def taken_over(inbox, monkeypatch, *, then):
    """Have the next request find at its very end that another process has taken it over; gives the other's claims."""
    right, claims = PostgresStore.within, []

    def within(self, cursor, claim, state, result):
        inbox.rows("UPDATE hookonce.idempotency SET lease_until = now() RETURNING key")
        claims.append(operation.begin(store(inbox), claim.key, claim.fingerprint, server.KEY_TERMS))
        then(right, self, cursor, claim, state, result)

    monkeypatch.setattr(PostgresStore, "within", within)
    return claims


def test_request_that_was_taken_over_stores_no_result_over_the_new_claim(inbox, monkeypatch):
    (event,) = inbox.deliver("evt_1", status="held")
    with monkeypatch.context() as patch:
        claims = taken_over(inbox, patch, then=lambda within, *rest: within(*rest))

        answer = replay(inbox, event)

    assert (answer.status_code, answer.json) == (202, {"status": "in_progress"})
    assert inbox.rows("SELECT status FROM hookonce.event_states") == [("held",)]
    operation.complete(store(inbox), *claims, Result(200, {}, b"the other's"))
    assert replay(inbox, event).data == b"the other's"


def test_request_that_was_taken_over_and_fails_leaves_the_new_claim(inbox, monkeypatch):
    (event,) = inbox.deliver("evt_1", status="held")

    with monkeypatch.context() as patch:
        taken_over(inbox, patch, then=cut)
        assert replay(inbox, event).status_code == 503

    assert replay(inbox, event).json == {"status": "in_progress"}


def test_work_is_undone_when_its_result_can_not_be_stored(inbox, monkeypatch):
    (event,) = inbox.deliver("evt_1", status="held")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresStore, "within", cut)
        assert replay(inbox, event).status_code == 503

    assert inbox.rows("SELECT status FROM hookonce.event_states") == [("held",)]
    assert replay(inbox, event).json["outcomes"][0]["fate"] == "released"


def test_key_is_free_again_after_a_refusal(inbox):
    (event,) = inbox.deliver("evt_1")
    refused = inbox.ask("POST", "/bulk-replays/7/stop", headers=KEY)

    assert refused.status_code == 404
    assert replay(inbox, event).status_code == 200


def test_result_is_forgotten_after_a_day(inbox):
    first, second, third, fourth = inbox.deliver("evt_1", "evt_2", "evt_3", "evt_4")
    replay(inbox, first)
    inbox.connection.execute(
        "UPDATE hookonce.idempotency SET lease_until = NULL, expires_at = now() - interval '1 hour'"
    )

    assert replay(inbox, second).status_code == 200
    replay(inbox, third, headers={"Idempotency-Key": "two"})
    inbox.connection.execute(
        "UPDATE hookonce.idempotency SET lease_until = NULL, expires_at = now() - interval '1 hour'"
    )
    replay(inbox, fourth, headers={"Idempotency-Key": "three"})

    assert inbox.rows("SELECT key FROM hookonce.idempotency") == [("three",)]
