import random
import threading
from datetime import timedelta

from sqlalchemy import text

from tests.support.ordered import OWN, deliver, order, save
from tests.support.waiting import until


def left(inbox):
    return inbox.rows("SELECT count(*) FROM hookonce.queue")[0][0]


def test_run_that_waits_for_its_entity_is_given_back_uncharged(inbox, pool_of):
    others = [order(f"other{n}", 1, of=f"o{n}") for n in range(40)]
    enough, held = threading.Event(), threading.Event()

    def slow(event, tx):
        if event.subject.entity == "hot":
            held.set()
            enough.wait(30)
        save(event, tx)

    inbox.on(slow, **OWN, timeout=timedelta(minutes=1))
    inbox.registry.note("slow", timedelta(milliseconds=1))
    deliver(inbox, *(order(f"hot{n:02}", n, of="hot") for n in range(40)), *others)

    with pool_of(16) as pool:
        pool.run_due()
        held.wait(10)
        try:
            until(lambda: pool.run_due() or len(inbox.effects()), 40, seconds=20)
            assert all("other" in each for each in inbox.effects())
        finally:
            enough.set()
        until(lambda: pool.run_due() or left(inbox), 0, seconds=30)

    assert {run[2:] for run in inbox.runs()} == {("done", 1)}
    assert "039 hot39" in inbox.effects()


def test_versions_that_were_applied_rise_whatever_the_order(inbox, pool_of):
    fails = random.Random(1)  # noqa: S311  no secret

    def apply(event, tx):
        tx.execute(
            text("INSERT INTO applied (entity, version) VALUES (:entity, :version)"), event.subject._asdict()
        )
        if fails.random() < 0.05:
            raise LookupError("it passes")

    inbox.connection.execute("CREATE TABLE applied (n serial, entity text, version bigint)")
    inbox.on(apply, **OWN, attempts=20)
    events = [order(f"{of}.{version}", version, of=f"o{of}") for version in range(1, 6) for of in range(100)]
    deliver(inbox, *events)

    with pool_of(8) as pool:
        pool.run_due()
        until(lambda: pool.run_due() or left(inbox), 0, seconds=60)

    assert inbox.rows(
        "SELECT count(*) FROM (SELECT max(version) v FROM applied GROUP BY entity) x WHERE v = 5"
    ) == [(100,)]
    assert not inbox.rows(
        "SELECT 1 FROM (SELECT version, lag(version) OVER (PARTITION BY entity ORDER BY n) AS before FROM applied) x "
        "WHERE before > version"
    )
