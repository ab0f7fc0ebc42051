"""Whatever a handler leaves on the driver's side of a connection reaches no other: loaders, listeners, attributes."""

import psycopg
import pytest
from psycopg.adapt import Loader
from psycopg.rows import dict_row
from sqlalchemy import Connection, event, text

from hookonce.receiver.ledger.database import engines
from tests.jobs.attempts.test_left_in_sessions import WORKERS, worked
from tests.support.inbox import inbox

__all__ = ["inbox"]


class Strange(Loader):
    def load(self, data):
        return "strange" if data else None


def driver_of(tx):
    """Return the driver's connection by a way that SQLAlchemy does not know of."""
    return tx.execute(text("SELECT 1")).cursor.connection


def loaders(tx):
    for name in ("int8", "int4", "text", "uuid", "timestamptz"):
        driver_of(tx).adapters.register_loader(name, Strange)


def notices(tx):
    driver_of(tx).add_notice_handler(print)


def notifications(tx):
    driver_of(tx).add_notify_handler(print)


def never_prepares(tx):
    driver_of(tx).prepare_threshold = None


def always_prepares(tx):
    driver_of(tx).prepare_threshold = 0


def prepares_nothing(tx):
    driver_of(tx).prepared_max = 0


def row_factory(tx):
    driver_of(tx).row_factory = dict_row


def server_cursors(tx):
    driver_of(tx).server_cursor_factory = psycopg.RawServerCursor


def commits_by_itself(tx):
    driver_of(tx)._autocommit = True  # noqa: SLF001  as a handler might


def attribute(tx):
    driver_of(tx).tenant = "acme"


def past_the_driver(tx):
    driver_of(tx).pgconn.exec_(b"SET app.tenant = 'acme'")


def noted(tx):
    tx.info["tenant"] = "acme"


def listener(tx):
    def change(_connection, _cursor, statement, parameters, *_):
        return statement.replace("SELECT 7", "SELECT 8"), parameters

    event.listen(tx, "before_cursor_execute", change, retval=True)


WAYS = [
    loaders,
    notices,
    notifications,
    never_prepares,
    always_prepares,
    prepares_nothing,
    row_factory,
    server_cursors,
    commits_by_itself,
    attribute,
    past_the_driver,
    noted,
    listener,
]


def state(tx):
    """Return what is as it was, or was left by somebody."""
    driver = engines.raw(tx)
    return {
        "loaded": tx.exec_driver_sql("SELECT 7::int8, 7::int4, 'text'").one(),
        "sent": tx.exec_driver_sql("SELECT 7").scalar(),
        "tenant": tx.exec_driver_sql("SELECT coalesce(current_setting('app.tenant', true), '')").scalar(),
        "told": (len(driver._notice_handlers), len(driver._notify_handlers)),  # noqa: SLF001  no other way to see them
        "prepares": (driver.prepare_threshold, driver.prepared_max),
        "commits by itself": driver.autocommit,
        "made by": (driver.row_factory, driver.server_cursor_factory),
        "attribute": getattr(driver, "tenant", None),
        "noted": Connection.connection.__get__(tx).info.get("tenant"),
    }


@pytest.mark.parametrize("worker", WORKERS.values(), ids=WORKERS)
@pytest.mark.parametrize("ends", [True, False], ids=["ends", "fails"])
def test_handler_leaves_nothing_on_its_driver_to_the_next(inbox, worker, ends):
    def leave(event, tx):
        found.append(state(tx))
        WAYS[int(event.event_id)](tx)
        if not ends:
            raise LookupError("after all")

    def look(_event, tx):
        found.append(state(tx))

    found = []
    inbox.on(leave, pattern="leave", attempts=1)
    inbox.on(look, pattern="look")
    with worker(inbox) as work:
        for number in range(len(WAYS)):
            inbox.deliver(f"before {number}", type="look")
            inbox.deliver(str(number), type="leave")
            inbox.deliver(f"behind {number}", type="look")
        worked(inbox, work)

    assert [each for each in found if each != found[0]] == []
    assert len(found) == 3 * len(WAYS)
    assert {status for _, name, status, _ in inbox.runs() if name == "look"} == {"done"}
