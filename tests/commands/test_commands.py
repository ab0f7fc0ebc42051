"""`/commands/<name>`: a command is committed, done once, and answered alike ever after."""

import base64
import threading
from dataclasses import replace

import psycopg
import pytest

from hookonce.receiver.app import create_app
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.stats import totals
from tests.support.commands import DEADLINE
from tests.support.waiting import until

BODY = {"amount": 5}
WAIT = 'in_progress = "wait 20s"'


def test_command_is_accepted_done_and_answered_alike(shop):
    first = shop.ask(BODY)
    twin = shop.ask(BODY)
    shop.work()
    again, reordered = shop.ask(BODY), shop.ask('{"amount" : 5.0}')

    for answer in (first, twin):
        assert (answer.status, answer.json, answer.is_replayed) == (202, {"status": "in_progress"}, False)
        assert int(answer.headers["Retry-After"]) > 0
        assert answer.headers["Location"] == first.headers["Location"]
    for answer in (again, reordered):
        assert (answer.status, answer.json, answer.is_replayed) == (200, {"paid": 5, "attempt": 1}, True)
    assert len(shop.payments) == 1


def test_command_is_an_event_with_one_run(shop):
    shop.ask(BODY)
    shop.work()

    assert shop.rows(
        "SELECT source, provider, type, account, status, deliveries FROM hookonce.event_states"
    ) == [("commands.payments", "command", "payments", "shop", "done", 1)]
    assert shop.rows("SELECT handler, status, attempts FROM hookonce.run_states") == [
        ("commands.payments", "done", 1)
    ]


def test_command_has_steps_that_are_done_once(shop):
    body = {"then": "step", "amount": 5}
    shop.ask(body)
    shop.work()
    shop.ledger.execute("UPDATE hookonce.queue SET due_at = now()")
    shop.work()

    answer = shop.ask(body)

    assert (answer.status, answer.json["attempt"], len(answer.json["key"])) == (200, 1, 64)
    assert shop.rows("SELECT handler, name, state, attempt FROM hookonce.steps") == [
        ("commands.payments", "charge", "completed", 1)
    ]


def test_state_can_be_asked_for(shop):
    location = shop.ask(BODY).headers["Location"]

    before = shop.look(location)
    shop.work()
    after = shop.look(location)

    assert (before.status, before.json, before.headers["Retry-After"]) == (
        200,
        {"status": "in_progress"},
        "1",
    )
    assert after.json == {"status": "completed", "result": {"paid": 5, "attempt": 1}}
    assert shop.look(location, "TILL").status == 404
    assert shop.look("/commands/payments/" + "0" * 64).status == 404
    assert shop.look(location.replace("payments", "refunds")).status == 404


def test_new_command_that_is_waited_for_is_answered_with_its_result(open_shop):
    shop = open_shop(WAIT + "\nstatus = 201")

    (answer,) = shop.meanwhile(lambda: shop.ask(BODY))

    assert (answer.status, answer.json, answer.is_replayed) == (201, {"paid": 5, "attempt": 1}, False)


def test_twenty_at_once_have_one_effect_and_one_answer(open_shop):
    shop, barrier = open_shop(WAIT), threading.Barrier(20)

    def ask():
        barrier.wait(DEADLINE)
        return shop.ask(BODY)

    answers = shop.meanwhile(*[ask] * 20)

    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    assert sum(not answer.is_replayed for answer in answers) == 1
    assert len(shop.payments) == 1


def test_those_who_wait_share_one_connection(open_shop):
    shop = open_shop('in_progress = "wait 3s"')
    shop.ask(BODY, "warm")  # the lane that stores
    before = connected(shop)
    with psycopg.connect(libpq_url(shop.settings.database_url)):
        threads = [threading.Thread(target=shop.ask, args=(BODY, f"key-{n}")) for n in range(20)]
        for thread in threads:
            thread.start()
        until(lambda: shop.rows("SELECT count(*) FROM hookonce.event_states"), [(21,)])
        most = connected(shop)
        for thread in threads:
            thread.join(DEADLINE)

    assert most <= before + 1 + 3  # the one opened here; lanes that were called for when one was stuck


def connected(shop):
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    return shop.rows(query)[0][0]


@pytest.mark.parametrize(
    ("options", "busy", "reused"),
    [("", 202, 409), ('in_progress = "409"', 409, 409), ('dialect = "ietf"\nin_progress = "409"', 409, 422)],
)
def test_dialects_differ_in_their_refusals(open_shop, options, busy, reused):
    shop = open_shop(options)

    statuses = [shop.ask(BODY).status, shop.ask(BODY).status, shop.ask({"amount": 6}).status]

    assert statuses == [202, busy, reused]
    assert shop.ask(BODY, None).status == 400


def test_key_of_another_request_is_refused_whatever_became_of_it(shop):
    shop.ask(BODY)
    codes = [shop.ask({"amount": 6}).json["code"]]
    shop.work()
    codes.append(shop.ask({"amount": 6}).json["code"])

    assert codes == ["key_reused"] * 2
    assert len(shop.payments) == 1


def test_final_failure_is_given_again(shop):
    shop.ask({"then": "give up"})
    shop.work()

    first, again = shop.ask({"then": "give up"}), shop.ask({"then": "give up"})

    assert (first.status, first.json["code"], first.is_replayed) == (422, "failed", True)
    assert (again.status, again.body) == (first.status, first.body)
    assert "card" not in first.body.decode()
    assert shop.payments == []
    assert shop.look(shop.ask({}, "two").headers["Location"]).json == {"status": "in_progress"}


def test_failure_for_now_is_told_and_tried_again_by_itself(shop):
    body = {"then": "fail once", "amount": 5}
    location = shop.ask(body).headers["Location"]
    shop.work()

    first, state = shop.ask(body), shop.look(location)
    shop.work()
    again = shop.ask(body)

    assert (first.status, first.json["code"], first.is_replayed) == (503, "failed_retryable", False)
    assert first.headers["Retry-After"]
    assert first.headers["Location"] == location
    assert state.json == {"status": "failed_retryable"}
    assert (again.status, again.json, again.is_replayed) == (200, {"paid": 5, "attempt": 2}, True)
    assert len(shop.payments) == 1


def test_refusal_of_the_handler_is_the_answer_and_nothing_is_written(shop):
    location = shop.ask({"then": "refuse"}).headers["Location"]
    shop.work()

    answers = [shop.ask({"then": "refuse"}) for _ in range(2)]

    for answer in answers:
        assert (answer.status, answer.json["code"], answer.is_replayed) == (402, "declined", True)
        assert answer.json["title"] == "Payment Required"
    assert shop.look(location).json == {
        "status": "failed_final",
        "refusal": {"status": 402, "code": "declined", "detail": "the bank says no"},
    }
    assert shop.payments == []
    assert shop.rows("SELECT status FROM hookonce.event_states") == [("done",)]


def test_conflicts_are_told_apart(shop):
    """Of keys, of versions, and of time."""
    shop.ask({"version": 3, "amount": 1}, "a", Expected_Version="3")
    shop.ask({"version": 4, "amount": 1}, "b", Expected_Version="3")
    shop.ask({"then": "late"}, "c")
    shop.work()

    done = shop.ask({"version": 3, "amount": 1}, "a", Expected_Version="3")
    version = shop.ask({"version": 4, "amount": 1}, "b", Expected_Version="3")
    late, reused = shop.ask({"then": "late"}, "c"), shop.ask({"amount": 7}, "c")

    assert (done.status, done.json["paid"]) == (200, 1)
    assert [(each.status, each.json["code"]) for each in (version, late, reused)] == [
        (409, "version_conflict"),
        (409, "too_late"),
        (409, "key_reused"),
    ]
    assert len(shop.payments) == 1


def test_reused_key_is_no_conflict_of_a_sender(shop, caplog, database_url):
    shop.ask(BODY, "a")

    shop.ask({**BODY, "amount": 8}, "a")

    words = {record.message for record in caplog.records}
    assert "key reused" in words
    assert "conflict" not in words
    with connections.connect(database_url) as connection:
        assert totals.conflicts(connection) == (0, 1)


def test_expected_version_is_part_of_what_is_asked_for(shop):
    shop.ask(BODY, Expected_Version="3")

    assert shop.ask(BODY, Expected_Version="4").json["code"] == "key_reused"


def test_keys_belong_to_command_client_tenant_and_actor(shop):
    def order(**changes):
        headers = {"Tenant": "t1", "Actor": "ann"} | changes
        return shop.ask(BODY, path="orders", **headers)

    asked = [
        shop.ask(BODY),
        shop.ask(BODY, client="TILL"),
        shop.ask(BODY, path="refunds"),
        order(),
        order(Tenant="t2"),
        order(Actor="bob"),
        order(Tenant="t1ann", Actor="x"),
    ]

    assert [answer.status for answer in asked] == [202] * 7
    assert len({answer.headers["Location"] for answer in asked}) == 7
    shop.work()
    assert len(set(shop.payments)) == 7
    assert order().is_replayed
    accounts = {account for (account,) in shop.rows("SELECT account FROM hookonce.event_states")}
    assert accounts == {"shop", "till", "shop/t1", "shop/t2", "shop/t1ann"}


def test_key_outlives_the_token_it_was_used_with(shop):
    shop.ask(BODY)
    shop.work()

    assert shop.ask(BODY, client="SHOP_NEW").is_replayed


def test_chosen_headers_are_part_of_what_is_asked_for(shop):
    def order(currency, **more):
        return shop.ask(BODY, path="orders", Tenant="t", Actor="a", Currency=currency, **more)

    order("EUR", User_Agent="one")

    assert order("EUR", User_Agent="two").status == 202
    assert order("USD").json["code"] == "key_reused"


@pytest.mark.parametrize("token", ["", "wrong", "token-of-the-shop-10"])
def test_stranger_is_refused(shop, token):
    answer = shop.ask(BODY, client=token)

    assert (answer.status, answer.json["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert shop.rows("SELECT FROM hookonce.event_states") == []


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"key": None}, 400, "key_missing"),
        ({"key": "a b"}, 400, "bad_key"),
        ({"key": "x" * 256}, 400, "bad_key"),
        ({"key": "one,two"}, 400, "bad_key"),
        ({"key": '"one","two"'}, 400, "bad_key"),
        ({"body": "{"}, 400, "bad_body"),
        ({"body": ""}, 400, "bad_body"),
        ({"body": '{"a": 1, "a": 2}'}, 400, "bad_body"),
        ({"body": "[" * 1000 + "]" * 1000}, 400, "bad_body"),
        ({"body": b"\xff"}, 400, "bad_body"),
        ({"body": '{"amount": %s}' % ("9" * 5000)}, 400, "bad_body"),
        ({"body": '{"amount": 1e999999}'}, 400, "bad_body"),
        ({"body": '{"amount": [-1e400]}'}, 400, "bad_body"),
        ({"body": " " * 65537}, 413, "too_large"),
        ({"Content_Type": "text/plain"}, 415, "unsupported_media_type"),
        ({"Expected_Version": " "}, 400, "bad_header"),
        ({"path": "orders"}, 400, "bad_header"),
        ({"path": "nothing"}, 404, "unknown_command"),
        ({"path": "payments/x"}, 404, "unknown_command"),
        ({"path": "payments", "method": "PUT"}, 405, "bad_method"),
        ({"path": "payments/" + "0" * 64}, 405, "bad_method"),
    ],
)
def test_what_can_not_be_read_is_refused_and_not_stored(shop, changes, status, code):
    given = {"body": BODY} | changes
    answer = shop.ask(given.pop("body"), **given)

    assert (answer.status, answer.json["code"]) == (status, code)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert shop.rows("SELECT FROM hookonce.event_states") == []


def test_client_that_asks_too_often_is_told_to_wait(open_shop):
    shop = open_shop("rate = 2")

    answers = [shop.ask(BODY, f"key-{n}") for n in range(4)]

    assert [answer.status for answer in answers[:2]] == [202, 202]
    assert (answers[-1].status, answers[-1].json["code"]) == (429, "too_many_requests")
    assert answers[-1].headers["Retry-After"]
    assert shop.ask(BODY, client="TILL").status == 202


def test_quota_holds_new_keys_back_and_answers_known_ones(open_shop):
    shop = open_shop('quota = "2/h"')

    answers = [shop.ask(BODY, f"key-{n}") for n in (0, 1, 0, 1, 2, 3)]
    shop.work()

    assert [answer.status for answer in answers] == [202, 202, 202, 202, 429, 429]
    assert (answers[-1].json["code"], int(answers[-1].headers["Retry-After"]) > 1700) == (
        "too_many_keys",
        True,
    )
    assert [shop.ask(BODY, f"key-{n}").status for n in (0, 1, 2)] == [200, 200, 429]
    assert shop.ask(BODY, "key-9", client="TILL").status == 202


def test_nothing_is_promised_while_the_ledger_is_away(shop):
    away = create_app(replace(shop.settings, database_url="postgresql://127.0.0.1:1/nowhere"))
    here, shop.app = shop.app, away

    answers = [shop.ask(BODY), shop.look("/commands/payments/" + "0" * 64)]
    shop.app = here
    away.extensions["hookonce_commands"].outcomes.close()
    away.extensions["hookonce"].close()

    assert [(answer.status, answer.json["code"]) for answer in answers] == [(503, "keys_unavailable")] * 2
    assert all(answer.headers["Retry-After"] for answer in answers)
    assert shop.ask(BODY).status == 202


def test_body_is_sealed_where_bodies_are(open_shop):
    shop = open_shop(BODY_KEY=base64.b64encode(bytes(range(32))).decode())
    shop.ask({"amount": 5, "card": "4242"})
    ((body,),) = shop.rows("SELECT body FROM hookonce.bodies")
    shop.work()

    assert b"4242" not in body
    assert shop.ask({"amount": 5, "card": "4242"}).json["paid"] == 5


def test_path_is_unknown_where_nothing_is_configured(receiver):
    response = receiver.app.test_client().post("/commands/payments")

    assert response.status_code == 404
