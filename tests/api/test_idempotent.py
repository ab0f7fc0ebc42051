import psycopg
import pytest

from receiver.ledger import idempotency

KEY = {"Idempotency-Key": "one"}


def replay(desk, *events, scope="admin", headers=KEY):
    return desk.ask("POST", "/replays", {"events": list(events)}, scope=scope, headers=headers)


def test_request_is_done_once_and_its_answer_given_again(desk):
    (event,) = desk.deliver("evt_1", status="held")

    first, again = replay(desk, event), replay(desk, event)

    assert (again.status_code, again.data) == (first.status_code, first.data)
    assert first.json["outcomes"][0]["fate"] == "released"
    assert (first.headers.get("Idempotency-Replayed"), again.headers["Idempotency-Replayed"]) == (
        None,
        "true",
    )
    assert desk.rows("SELECT count(*) FROM audit WHERE action = 'release'") == [(1,)]


def test_key_is_the_same_quoted_and_bare(desk):
    replay(desk, 1)

    assert "Idempotency-Replayed" in replay(desk, 1, headers={"Idempotency-Key": '"one"'}).headers


def test_key_of_another_body_is_refused(desk):
    replay(desk, 1)

    answer = replay(desk, 2)

    assert (answer.status_code, answer.json["code"]) == (409, "key_reused")


def test_key_belongs_to_its_token(desk):
    replay(desk, 1)

    answer = replay(desk, 2, scope="replay")

    assert answer.status_code == 200


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
def test_key_is_refused_unless_it_is_visible_ascii(desk, key):
    assert replay(desk, 1, headers={"Idempotency-Key": key}).status_code == 422


def claim(desk, event):
    """Begin a request as another process would, and do no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idempotency, "finish", interrupt)
        patch.setattr(idempotency, "abandon", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            replay(desk, event)


def interrupt(*_):
    raise KeyboardInterrupt


def test_request_under_way_is_answered_with_come_back(desk):
    claim(desk, 1)

    answer = replay(desk, 1)

    assert (answer.status_code, answer.json) == (202, {"status": "in_progress"})
    assert int(answer.headers["Retry-After"]) > 0
    assert replay(desk, 2).status_code == 409


def test_request_of_a_dead_process_is_taken_over_after_a_minute(desk):
    (event,) = desk.deliver("evt_1", status="held")
    claim(desk, event)
    ((token, started_at),) = desk.rows(
        "UPDATE idempotency SET started_at = now() - interval '61 s' RETURNING token, started_at"
    )

    other = replay(desk, 99)
    answer = replay(desk, event)

    assert (other.status_code, other.json["code"]) == (409, "key_reused")
    assert answer.json["outcomes"][0]["fate"] == "released"
    late = idempotency.Claim(token, "one", started_at)
    with pytest.raises(idempotency.TakenOver):
        idempotency.finish(desk.connection, late, idempotency.Result(200, {}, b""))


def test_work_is_undone_when_its_result_can_not_be_stored(desk, monkeypatch):
    (event,) = desk.deliver("evt_1", status="held")

    def cut(*_):
        raise psycopg.OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(idempotency, "finish", cut)
        assert replay(desk, event).status_code == 503

    assert desk.rows("SELECT status FROM events") == [("held",)]
    assert replay(desk, event).json["outcomes"][0]["fate"] == "released"


def test_key_is_free_again_after_a_refusal(desk):
    refused = desk.ask("POST", "/bulk-replays/7/stop", headers=KEY)

    assert refused.status_code == 404
    assert replay(desk, 1).status_code == 200


def test_result_is_forgotten_after_a_day(desk):
    replay(desk, 1)
    desk.connection.execute("UPDATE idempotency SET started_at = now() - interval '25 hours'")

    assert replay(desk, 2).status_code == 200
    replay(desk, 3, headers={"Idempotency-Key": "two"})
    desk.connection.execute("UPDATE idempotency SET started_at = now() - interval '25 hours'")
    replay(desk, 4, headers={"Idempotency-Key": "three"})

    assert desk.rows("SELECT key FROM idempotency") == [("three",)]
