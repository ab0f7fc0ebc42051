"""What is known of events that never came is the same wherever it is asked for."""

import re
from datetime import timedelta

import pytest

from hookonce.jobs.alerts import conditions
from hookonce.receiver.cli.doctor.ledger_checks import ledger_checks
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.sources import SourcePath, get_source, list_sources
from hookonce.receiver.monitoring import ledger_metrics
from tests.sender_api.test_reconciling import GITHUB, HOUR, KEYS, body_of, send
from tests.support.fake_senders import GitHub


@pytest.fixture
def github(world):
    made = world.serve(GitHub(world.clock))
    world.configure(GITHUB + "[sources.slack]\nsecrets = ['env:GITHUB_SECRET']\n", **KEYS)
    return made


def shown(world, name="github"):
    desk = Desk(world.settings, world.connection, "test")
    return desk.ask(get_source, which=SourcePath(source=name))


def missing_by_metric(world):
    [family] = [
        each
        for each in ledger_metrics.collect(world.connection, {"github": 1})
        if each.name == "hookonce_missing_events"
    ]
    return {sample.labels["source"]: sample.value for sample in family.samples}


def alerts(world, now):
    found = conditions.ledger_conditions(world.connection, world.settings, {}, now, now)
    return {kind: text for (kind, _), text in found.items()}


def test_certificate_names_what_is_missing_before_and_nothing_after(world, github):
    guids = send(world, github, 20, failing={3, 7})
    world.turn()

    before = shown(world)
    assert {each.event_id for each in before.missing_events} == {guids[3], guids[7]}
    assert {each.why for each in before.missing_events} == {"no delivery was answered 2xx"}
    assert sum(each.listed for each in before.listed_days) == 20
    assert sum(each.in_ledger for each in before.listed_days) == 18
    assert re.fullmatch(r"asked \d+ s ago; up to .* UTC 2 events are missing", before.never_came)
    assert missing_by_metric(world) == {"github": 2}
    assert "2 events that never came" in alerts(world, world.clock() + 2 * HOUR)["missing_events"]
    assert [each.level for each in ledger_checks(world.settings) if each.check.startswith("never came")] == [
        "warn"
    ]

    for guid in (guids[3], guids[7]):
        world.deliver("github", body_of(guid), guid, "issues")
    world.turn()

    after = shown(world)
    assert after.missing_events == []
    assert sum(each.in_ledger for each in after.listed_days) == 20
    assert after.never_came.endswith("nothing is missing")
    assert missing_by_metric(world) == {"github": 0}
    assert "missing_events" not in alerts(world, world.clock() + 2 * HOUR)
    assert [each.level for each in ledger_checks(world.settings) if each.check.startswith("never came")] == [
        "ok"
    ]


@pytest.mark.usefixtures("github")
def test_sender_that_is_not_asked_is_said_to_be(world):
    listed = Desk(world.settings, world.connection, "test").ask(list_sources).data

    assert {each.name: each.never_came for each in listed} == {
        "github": "not known: its sender was not asked yet",
        "slack": "can't be known for this sender, which is not asked",
    }


def test_sender_that_can_not_be_asked_is_told_of(world, github):
    github.next_answers = [(401, {}, b"{}")] * 50
    world.pass_time(3 * HOUR, timedelta(minutes=20))

    assert "answered 401" in shown(world).never_came
    assert "answered 401" in alerts(world, world.clock())["sender_not_asked"]
