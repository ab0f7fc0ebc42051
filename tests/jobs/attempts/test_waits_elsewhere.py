"""Waits of handlers in Django's transactions."""

import pytest

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from tests.support.django_project import entry
from tests.support.inbox import inbox
from tests.support.waiting_handlers import DAYS, deliver, on, sleep

__all__ = ["entry", "inbox"]


def fulfil(event, connection):
    found = event.wait("ci", event.data["sha"], timeout=DAYS)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects VALUES (%s)", [f"{event.event_id} {found and found['n']}"])


def writes_before_it_waits(event, connection):
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO effects VALUES ('before')")
    event.wait("ci", event.data["sha"], timeout=DAYS)


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
@pytest.mark.usefixtures("entry")
def test_event_is_waited_for_in_django(inbox, is_first):
    inbox.transactions = DjangoTransactions
    on(inbox, fulfil)

    for kind in ("check", "order") if is_first else ("order", "check"):
        deliver(inbox, kind[0], kind, n=7)
        inbox.work()

    assert inbox.effects() == ["o 7"]
    assert {run[2:] for run in inbox.runs()} == {("done", 1)}


@pytest.mark.usefixtures("entry")
def test_write_before_a_wait_is_told_in_django_and_a_wait_alone_is_not(inbox, caplog):
    inbox.transactions = DjangoTransactions
    on(inbox, writes_before_it_waits)
    on(inbox, fulfil, pattern="other")
    deliver(inbox, "x", "other")
    deliver(inbox, "o", "order")

    inbox.work()

    told = [each.args[0] for each in caplog.records if "writes before" in each.getMessage()]
    assert told == ["writes_before_it_waits"]


@pytest.mark.usefixtures("entry")
def test_none_is_the_answer_in_django_when_the_time_is_over(inbox):
    inbox.transactions = DjangoTransactions
    on(inbox, fulfil)
    deliver(inbox, "o", "order")
    inbox.work()

    sleep(inbox, DAYS)
    inbox.work()

    assert inbox.effects() == ["o None"]
