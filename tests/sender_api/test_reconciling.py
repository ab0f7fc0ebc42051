import json
import logging
import re
import threading
import uuid
from collections import Counter
from datetime import timedelta

import pytest

from hookonce.receiver.intake.sender_api import rounds
from tests.support.fake_senders import GitHub, Stripe, json_of

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
HOOK = "https://api.github.com/repos/octocat/Hello-World/hooks/12345678"
GITHUB = f"""
[sources.github]
secrets = ["env:GITHUB_SECRET"]
api_key = "env:GITHUB_TOKEN"
api = "{HOOK}"
reconcile = "1h"
"""
STRIPE = """
[sources.stripe]
secrets = ["env:STRIPE_SECRET"]
api_key = "env:STRIPE_KEY"
reconcile = "1h"
"""
KEYS = {
    "GITHUB_SECRET": "whsec_test",
    "GITHUB_TOKEN": "github_pat_11AAAA",
    "STRIPE_SECRET": "whsec_test",
    "STRIPE_KEY": "rk_test_51AAAA",
}


@pytest.fixture
def github(world):
    made = world.serve(GitHub(world.clock))
    made.door = lambda guid: world.deliver("github", body_of(guid), guid, "issues")
    world.configure(GITHUB, **KEYS)
    return made


@pytest.fixture
def stripe(world):
    made = world.serve(Stripe(world.clock))
    world.configure(STRIPE, **KEYS)
    return made


def body_of(guid):
    return json.dumps({"action": "opened", "issue": {"id": guid}}).encode()


def send(world, github, number, *, since=HOUR, failing=()):
    """Have GitHub deliver so many events, and fail to deliver some; return their ids in order."""
    guids = [str(uuid.UUID(int=n + 1)) for n in range(number)]
    for n, guid in enumerate(guids):
        at = world.clock() - since + n * since / number / 2
        status = 502 if n in failing else world.deliver("github", body_of(guid), guid, "issues")
        github.add(guid, at, status=status)
    return guids


def event(number, created, kind="invoice.paid", **changes):
    return {
        "id": f"evt_1NG8Du2eZvKYlo2C{number:08}",
        "object": "event",
        "api_version": "2019-02-19",
        "created": int(created.timestamp()),
        "data": {"object": {"id": f"in_{number}", "object": "invoice"}},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": kind,
        **changes,
    }


def test_missing_deliveries_come_and_no_others(world, github):
    failing = {3, 50, 149}
    guids = send(world, github, 150, failing=failing)

    world.turn()
    before = world.missing()
    world.pass_time(5 * MINUTE)

    assert before == {guids[n] for n in failing}
    assert world.ids() == set(guids)
    assert not world.missing()
    assert sorted(github.redelivered) == sorted(guids[n] for n in failing)
    assert world.rows("SELECT sum(listed) FROM hookonce.listed_days") == [(150,)]


def test_receiver_that_is_unplugged_for_a_day_is_made_up_for_within_an_hour(world, github):
    world.pass_time(HOUR)
    world.is_plugged = False
    sent = []
    for _ in range(24 * 6):
        sent.append(str(uuid.uuid4()))
        github.add(sent[-1], world.clock())
        world.pass_time(10 * MINUTE, 10 * MINUTE)
    assert not world.ids()
    assert len(github.redelivered) == len(set(github.redelivered)) <= 3 * 24 + 3

    world.is_plugged = True
    world.pass_time(HOUR, 5 * MINUTE)

    assert world.ids() == set(sent)
    assert not world.missing()


def test_delivery_is_asked_for_twice_a_day_at_most(world, github):
    github.door = lambda _: 500
    send(world, github, 1, failing={0})
    [guid] = {each["guid"] for each in github.deliveries}

    for n in range(30):
        world.pass_time(10 * MINUTE, 10 * MINUTE)
        world.deliver("github", body_of(f"other {n}"), f"{n:08}-0000", "issues")  # it is up
        world.pass_time(50 * MINUTE, 25 * MINUTE)

    assert github.redelivered.count(guid) in {3, 4}  # in thirty hours
    assert world.missing() == {guid}


def test_late_delivery_is_a_duplicate(world, github):
    [guid] = send(world, github, 1, failing={0})
    world.turn()

    again = world.deliver("github", body_of(guid), guid, "issues")

    assert again == 200
    assert world.rows("SELECT count(*), (SELECT count(*) FROM hookonce.conflicts) FROM hookonce.events") == [
        (1, 0)
    ]


def test_what_is_young_is_left_to_the_next_pass(world, github):
    github.add("00000001", world.clock() - 2 * MINUTE)
    world.turn()
    assert not world.missing()

    world.clock.sleep(3600)
    world.turn()

    assert github.redelivered == ["00000001"]


def test_undelivered_events_of_stripe_are_taken_in(world, stripe):
    for n in range(230):
        stripe.add(event(n, world.clock() - HOUR))

    world.turn()

    assert len(world.ids()) == 230
    assert world.rows("SELECT DISTINCT origin, type FROM hookonce.events") == [("reconciled", "invoice.paid")]
    assert not world.missing()
    assert world.rows("SELECT sum(listed) FROM hookonce.listed_days") == [(230,)]


def test_delivery_in_another_version_after_it_is_no_conflict(world, stripe):
    listed = event(1, world.clock() - HOUR)
    stripe.add(listed)
    world.turn()

    late = json.dumps(listed | {"api_version": "2024-06-20"}).encode()
    world.deliver("stripe", late, None, "invoice.paid")
    world.receiver.app.extensions["hookonce"].close()

    assert world.rows("SELECT count(*), (SELECT count(*) FROM hookonce.conflicts) FROM hookonce.events") == [
        (1, 0)
    ]


def test_event_that_came_before_is_not_taken_again(world, stripe):
    listed = event(1, world.clock() - HOUR)
    world.deliver("stripe", json.dumps(listed | {"api_version": "2024-06-20"}).encode(), None, "invoice.paid")
    stripe.add(listed)

    world.turn()

    assert world.rows("SELECT origin FROM hookonce.events") == [(None,)]


def fail_once(server):
    """Have the second request of a server fail; return the paths that are asked for."""
    answer, asked = server.answer, []

    def once_cut(method, path, body):
        asked.append(path)
        return answer(method, path, body) if len(asked) != 2 else json_of({"message": "Server Error"}, 500)

    server.answer = once_cut
    return asked


def test_pass_that_ends_in_the_middle_goes_on_where_it_was(world, github):
    send(world, github, 250, failing={1, 249})
    asked = fail_once(github)
    world.turn()
    world.rounds = world.new_rounds()
    world.pass_time(10 * MINUTE)

    assert len(world.ids()) == 250
    assert world.rows("SELECT sum(listed) FROM hookonce.listed_days") == [(250,)]
    assert asked[1] == asked[2]
    assert "cursor" in asked[2]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((429, {"retry-after": "60"}, b"{}"), "answered 429: its limit is reached"),
        ((403, {"x-ratelimit-remaining": "0"}, b"{}"), "answered 403: its limit is reached"),
        ((500, {}, b"<html>"), "answered 500: expected 2xx"),
        (
            (401, {}, b'{"message": "Bad credentials"}'),
            "answered 401: the key is refused: it is wrong, over, or was revoked",
        ),
        ((403, {}, b"{}"), "answered 403: the key lacks a right"),
        ((404, {}, b"{}"), "answered 404: not found: the address is wrong, or the key may not see it"),
        (
            (302, {"location": "http://169.254.169.254/"}, b""),
            "answered 302: a redirect, which is not followed",
        ),
        ((200, {}, b"[{}]", "cut"), "did not answer|cut off|not whole JSON"),
        ((200, {}, b"[" * 5000), "the answer is not whole JSON"),
        ((200, {}, b'{"a": 1}'), "the answer is no list"),
        (json_of([{"guid": "x"}] * 101), "the page has 101 entries; expected 100 at most"),
        (json_of([{"guid": "../../x", "event": "push", "id": 1}]), "the answer has no usable 'guid'"),
        (
            json_of(
                [{"guid": "a-1", "event": "push", "id": "1/../2", "delivered_at": "2026-01-01T00:00:00Z"}]
            ),
            "'id'",
        ),
    ],
)
def test_answer_that_is_of_no_use_is_told_in_one_line(world, github, caplog, answer, told):
    github.next_answers = [answer]

    with caplog.at_level(logging.DEBUG):
        world.turn()

    problem, _, checked = world.listing()
    assert re.search(told, problem)
    assert "\n" not in problem
    assert checked is None
    assert len(github.requests) == 1
    assert KEYS["GITHUB_TOKEN"] not in caplog.text + problem
    world.clock.sleep(3600)
    world.turn()
    assert world.listing()[0] is None


def test_page_that_leads_back_is_refused(world, github):
    for n in range(3):
        github.add(f"0000000{n}", world.clock() - HOUR, status=200)
    entries = list(reversed(github.deliveries))
    link = {"link": f'<{HOOK}/deliveries?cursor=v1_1>; rel="next"'}
    github.next_answers = [json_of(entries, headers=link) for _ in range(20)]

    world.turn()

    assert "round in circles" in world.listing()[0]
    assert len(github.requests) == 2


def test_list_without_end_is_left_after_some_pages(world, github, monkeypatch):
    monkeypatch.setattr("hookonce.receiver.intake.sender_api.reconciling.MAX_PAGES", 3)
    send(world, github, 9, failing=range(9))
    github.page = 2

    world.turn()

    assert "more than 3 pages; goes on next time" in world.listing()[0]
    world.clock.sleep(600)
    world.turn()
    assert world.listing()[0] is None
    assert world.rows("SELECT sum(listed) FROM hookonce.listed_days") == [(9,)]


@pytest.mark.usefixtures("github")
def test_time_that_the_sender_lists_no_more_is_told(world):
    world.turn()
    begun = world.clock()

    world.clock.sleep(10 * 86400)
    world.turn()

    assert f"{begun - 5 * MINUTE:%Y-%m-%d %H:%M} to" in world.listing()[1]
    assert "can't be known: its sender lists for 3 d" in world.listing()[1]


def test_time_before_what_is_asked_for_is_compared_too(world, github):
    world.turn()
    world.clock.sleep(86400)
    [guid] = send(world, github, 1, since=10 * HOUR, failing={0})

    world.rounds.reconcile(world.connection, "github", world.clock() - HOUR, eager=True)

    assert github.redelivered == [guid]


def test_pass_under_way_is_not_cut_short_by_what_is_asked_for(world, github):
    send(world, github, 250, failing={1})
    fail_once(github)
    world.turn()

    world.rounds.reconcile(world.connection, "github", world.clock() - 40 * MINUTE, eager=True)

    assert len(world.ids()) == 250


def test_mistake_of_a_round_ends_no_other(world, monkeypatch, caplog):
    world.configure(STRIPE, **KEYS)
    stopping, turns = threading.Event(), []

    def turn(*_):
        turns.append(1)
        if len(turns) > 1:
            stopping.set()
        raise LookupError

    monkeypatch.setattr(rounds, "TURN", timedelta(0))
    monkeypatch.setattr(rounds.Rounds, "turn", turn)
    world.rounds.forever(stopping)

    assert len(turns) == 2
    assert [each.getMessage() for each in caplog.records] == ["senders are not asked"] * 2


def test_two_sources_that_ask_one_account_are_told_and_not_asked(world):
    stripe = world.serve(Stripe(world.clock))
    world.configure(
        STRIPE + STRIPE.replace("[sources.stripe]", "[sources.other]\nprovider = 'stripe'"), **KEYS
    )
    stripe.add(event(1, world.clock() - HOUR))

    world.turn()

    told = [problem for (problem,) in world.rows("SELECT problem FROM hookonce.listings")]
    assert len(told) == 2
    assert all("ask for the list of one account" in each for each in told)
    assert not stripe.requests
    assert not world.ids()


def test_event_that_another_source_of_the_account_has_is_left_there(world):
    stripe = world.serve(Stripe(world.clock))
    other = "[sources.other]\nprovider = 'stripe'\nsecrets = ['env:STRIPE_SECRET']\n"
    world.configure(STRIPE + other, **KEYS)
    listed = event(1, world.clock() - HOUR)
    world.deliver("other", json.dumps(listed).encode(), None, "invoice.paid")
    stripe.add(listed)

    world.turn()

    assert world.rows("SELECT source FROM hookonce.events") == [("other",)]
    assert "1 listed events came to another source" in world.listing()[0]


def test_no_more_than_a_tenth_of_the_limit_is_used(world, github):
    send(world, github, 700, failing=range(700))
    world.deliver("github", body_of("up"), "ffffffff", "issues")

    world.pass_time(3 * HOUR, 10 * MINUTE)

    assert world.ids() >= {each["guid"] for each in github.deliveries}
    assert max(Counter(github.hours).values()) <= 500


def test_key_that_is_not_here_is_told(world):
    world.serve(GitHub(world.clock))
    world.configure(GITHUB, GITHUB_SECRET="whsec_test")

    world.turn()

    assert world.listing()[0] == "api_key: GITHUB_TOKEN is not set"


def test_object_that_is_no_event_is_refused(world, stripe):
    stripe.add(event(1, world.clock() - HOUR, object="charge"))

    world.turn()

    assert world.listing()[0] == "the list has what is no event"
    assert not world.ids()
