import contextlib
from datetime import timedelta

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from hookonce.receiver.ledger.queries import event_details
from tests.support.inbox import effect
from tests.support.shop import Credit, credited, errors


class Own(Session):
    pass


def add_only(event, session):
    session.add(Credit(event=event.event_id))


def add_and_flush(event, session):
    session.add(Credit(event=event.event_id))
    session.flush()


def commit(event, session):
    session.add(Credit(event=event.event_id))
    session.commit()


def commit_and_roll_back(event, session):
    commit(event, session)
    session.add(Credit(event="undone"))
    session.flush()
    session.rollback()


def begin(event, session):
    with session.begin():
        session.add(Credit(event=event.event_id))


def go_on_after_a_conflict(event, session):
    session.add(Credit(event="taken"))
    with contextlib.suppress(IntegrityError):
        session.commit()
    session.rollback()
    session.add(Credit(event=event.event_id))


def nest(event, session):
    with contextlib.suppress(IntegrityError), session.begin_nested():
        session.add(Credit(event="taken"))
    session.add(Credit(event=event.event_id))


def read_after_commit(event, session):
    commit(event, session)
    assert session.scalars(select(Credit.event).where(Credit.event == event.event_id)).all() == [
        event.event_id
    ]


def close(event, session):
    with session:
        commit(event, session)


@pytest.mark.parametrize(
    "handle",
    [
        add_only,
        add_and_flush,
        commit,
        commit_and_roll_back,
        begin,
        go_on_after_a_conflict,
        nest,
        read_after_commit,
        close,
    ],
)
def test_what_a_session_writes_is_committed_with_its_run(shop, handle):
    def credit(event, session):
        handle(event, session)
        seen.append(credited(shop))

    seen = []
    shop.on(credit)
    shop.on(effect)
    shop.deliver("a", "b")

    shop.work()

    assert seen == [[], ["a"]]
    assert credited(shop) == shop.effects() == ["a", "b"]
    assert {row[2] for row in shop.runs()} == {"done"}


def test_handler_that_rolls_back_its_session_and_returns_is_done(shop):
    def seen_already(event, session):
        session.add(Credit(event=event.event_id))
        session.flush()
        session.rollback()
        return "seen"

    shop.on(seen_already)
    shop.deliver("a")

    shop.work()

    assert shop.runs() == [("a", "seen_already", "done", 1)]
    assert credited(shop) == errors(shop) == []


@pytest.mark.parametrize("handle", [add_only, add_and_flush, commit, commit_and_roll_back, begin])
def test_what_a_session_committed_goes_when_the_attempt_fails(shop, handle):
    def shaky(event, session):
        handle(event, session)
        if event.attempt == 1:
            raise LookupError("no such customer")

    shop.on(shaky)
    shop.deliver("a")

    shop.work()

    assert shop.runs() == [("a", "shaky", "done", 2)]
    assert credited(shop) == ["a"]


def fail_at_the_end(_, session):
    session.add(Credit(event="taken"))


def swallow_a_failed_flush(_, session):
    session.add(Credit(event="taken"))
    with contextlib.suppress(IntegrityError):
        session.flush()


@pytest.mark.parametrize(
    ("handle", "error"),
    [
        (fail_at_the_end, "IntegrityError"),
        (swallow_a_failed_flush, "PendingRollbackError"),
    ],
)
def test_session_that_can_not_be_committed_is_a_failed_attempt(shop, handle, error):
    def credit(event, session):
        handle(event, session)

    shop.on(credit, attempts=1)
    shop.deliver("a")

    shop.work()

    assert shop.runs() == [("a", "credit", "dead", 1)]
    assert error in errors(shop)[0]


def test_error_of_the_last_flush_says_that_the_handler_had_returned(shop):
    def credit(event, session):
        session.add_all([Credit(event=event.event_id), Credit(event=event.event_id)])

    shop.on(credit, attempts=1)
    shop.deliver("a")

    shop.work()

    (failure,) = event_details.detail(shop.connection, 1, shop.settings.keyring).with_content().failures
    assert "what the handler had left in its session was written, after it returned" in failure.traceback


def test_session_may_be_asked_for_by_its_class(shop):
    def by_annotation(event, db: Session):
        db.add(Credit(event=event.event_id))

    def by_a_class_of_its_own(_event, session: Own):
        seen.append(type(session))

    def in_isolation(_event, session):
        seen.append(session.connection().get_isolation_level())

    seen = []
    for handler in (by_annotation, by_a_class_of_its_own):
        shop.on(handler)
    shop.on(in_isolation, isolation="serializable")
    shop.deliver("a")

    shop.work()

    assert errors(shop) == []
    assert credited(shop) == ["a"]
    assert seen == [Own, "SERIALIZABLE"]


def test_session_is_cut_off_at_the_time_limit_of_its_handler(shop):
    def slow(event, session):
        commit(event, session)
        session.execute(text("SELECT pg_sleep(30)"))

    async def slow_async(event, session):
        session.add(Credit(event=event.event_id))
        await session.execute(text("SELECT pg_sleep(30)"))

    for handler in (slow, slow_async):
        shop.on(handler, attempts=1, timeout=timedelta(seconds=0.2))
    shop.on(effect)
    shop.deliver("a")

    while shop.work():
        pass

    assert [row[1:3] for row in shop.runs()] == [("effect", "done"), ("slow", "dead"), ("slow_async", "dead")]
    assert [error[:22] for error in errors(shop)] == ["took longer than 0.2 s"] * 2
    assert credited(shop) == []


async def add_async(event, session):
    session.add(Credit(event=event.event_id))


async def conflict_async(event, session):
    session.add(Credit(event="taken"))
    with contextlib.suppress(IntegrityError):
        await session.flush()
    await session.rollback()
    credit = Credit(event=event.event_id)
    session.add(credit)
    await session.commit()
    assert credit.event == event.event_id


@pytest.mark.parametrize("handle", [add_async, conflict_async])
def test_async_session_commits_and_rolls_back_as_its_own(shop, handle):
    async def credit(event, session: AsyncSession):
        await handle(event, session)
        seen.append(credited(shop))
        if event.attempt == 1:
            raise LookupError("no such customer")

    seen = []
    shop.on(credit)
    shop.deliver("a")

    shop.work()

    assert seen == [[], []]
    assert credited(shop) == ["a"]
    assert shop.runs() == [("a", "credit", "done", 2)]
