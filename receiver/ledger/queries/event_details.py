"""One event in full: its body, its runs and attempts, its steps, opened where the keys are here. Reads only."""

import builtins
from base64 import b64decode
from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any

import psycopg
from psycopg.rows import dict_row
from pydantic import BeforeValidator, ConfigDict, Field, SkipValidation, computed_field

from hookonce.providers.kit.reading.content_coding import text_and_headers
from hookonce.receiver.encryption import Keyring, body_context, result_context
from hookonce.receiver.ledger import reasons, results, steps
from hookonce.receiver.ledger.decryption import Body, StoredBody, decrypt_body, opened
from hookonce.receiver.ledger.queries.events import COLUMNS, Event
from hookonce.receiver.ledger.queries.failures import Failure, failure
from hookonce.receiver.ledger.reasons import PARKED_RUN, WAITS_FOR, WaitsFor
from hookonce.receiver.ledger.results import AttemptLog, is_skip, opened_lines, shallow
from hookonce.receiver.ledger.rows import Identifier, Ours, all_as, as_text
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.steps import Step
from hookonce.receiver.ledger.waits import OF_RUN, Wait
from hookonce.receiver.ledger.withheld import EMPTY, NULL, Content, ContentRow, ErrorText


class Run(ContentRow):
    """One handler's run; `error` is that of the latest failed attempt, unless the run is done."""

    handler: Ours
    status: Ours
    attempts: int
    cycle: int
    due_at: datetime | None
    lease_until: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    result: Annotated[Any, BeforeValidator(shallow), NULL]
    error: ErrorText
    parked: Ours | None = Field(
        default=None, description=f"why it waits beside others of its event: {reasons.described(of_run=True)}"
    )
    waits_for: WaitsFor | None = Field(
        default=None,
        description="why one that waits is not run at once; `backoff` after a failure, `delay` if it asked for that, "
        "`suspect` if its process died and it is run by itself, `batch` if others of its batch are to come along",
    )
    unreadable: Ours | None = Field(
        default=None, description="why the result can't be decrypted here; it is then null"
    )
    awaited: list[Wait] = Field(default_factory=list, description="its waits for other events, in this cycle")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def waits(self) -> Ours | None:
        """Why it is not run now, in words."""
        if self.parked:
            return reasons.why(self.parked, [self.waits_for]).words
        return reasons.of_waits_for(self.waits_for).words if self.waits_for else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_skipped(self) -> bool:
        """Whether its handler was not called, since it had done a newer version of the entity."""
        return is_skip(self.result) and "newest" in self.result


class OtherBody(ContentRow):
    """Another body that came under the event's id; it was kept and not run."""

    id: Identifier
    first_at: datetime
    last_at: datetime
    deliveries: int
    headers: Annotated[dict[str, str], EMPTY]
    bytes: Annotated[int, EMPTY]
    unreadable: Ours | None = Field(description="why the body can't be decrypted here; `bytes` is then 0")
    body: Annotated[str | None, NULL] = Field(default=None, description="with `bodies`, where it is text")
    body_b64: Annotated[str | None, NULL] = Field(
        default=None, description="with `bodies`, where it is not text"
    )

    @property
    def octets(self) -> builtins.bytes:
        """The body as it is kept."""
        return self.body.encode() if self.body is not None else b64decode(self.body_b64 or "")


class Detail(ContentRow):
    """Everything the ledger knows of an event; `body` is None once it is gone, and `why_no_body` says why."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    event: Event
    body: Annotated[SkipValidation[Body | None], Content(Body.withheld)]
    runs: list[Run]
    failures: list[Failure]
    conflicts: list[OtherBody]
    repeats: list[int]
    steps: list[Step]
    logs: list[AttemptLog]
    why_no_body: str = ""
    unread_logs: Collection[tuple[str, int, int]] = ()
    """The attempts (handler, cycle, number) whose lines were not asked for; in `logs` they have none."""


_EVENT = f"SELECT {COLUMNS} FROM hookonce.event_states AS events WHERE id = %s"  # noqa: S608  a constant

_WHY_NO_BODY = """
SELECT CASE WHEN erased_at IS NOT NULL THEN 'was erased' WHEN keep_body THEN 'was dropped by retention'
            ELSE 'is not kept by its source (keep_body = false)' END
FROM hookonce.events WHERE id = %s
"""

_BODY = """
SELECT b.url, b.headers, b.body, b.key_id, b.is_element, e.source, e.event_id, e.fingerprint
FROM hookonce.bodies b JOIN hookonce.events e ON e.id = b.event WHERE b.event = %s AND b.received_at = %s
"""

_RUNS = f"""
SELECT r.handler, r.status, r.attempts, r.cycle, r.due_at, r.lease_until, r.started_at, r.finished_at, r.result,
       r.sealed_result, r.key_id,
       CASE WHEN r.status <> '{RunStatus.DONE}' THEN
           (SELECT f.error FROM hookonce.failures f WHERE f.event = r.event AND f.handler = r.handler
            ORDER BY f.id DESC LIMIT 1)
       END AS error, {PARKED_RUN} AS parked, {WAITS_FOR} AS waits_for, {OF_RUN} AS awaited
FROM hookonce.run_states r WHERE r.event = %s ORDER BY r.handler
"""  # noqa: S608  constants

MAX_TRACEBACKS = 50
"""Failed attempts of an event, the newest, whose tracebacks are read."""

# Of each handler, or of all together, where it is read as a whole.
_AGE = "row_number() OVER (PARTITION BY CASE WHEN %(goes_on)s THEN handler END ORDER BY id DESC) AS age"
_FAILURES = f"""
SELECT handler, cycle, attempt, started_at, failed_at, error, issue, key_id,
       CASE WHEN age <= %(tracebacks)s THEN traceback END AS traceback
FROM (SELECT *, {_AGE} FROM hookonce.failures WHERE event = %(event)s) AS f ORDER BY id
"""  # noqa: S608  constants

MAX_LOGS = 200
"""Attempts of an event whose lines are read, the newest."""

# The row of a batch's first event is the last one of its before those of the others.
_LOGS_OF_BATCHES = """
SELECT t.other, found.* FROM unnest(%s::bigint[], %s::bigint[]) AS t (first, other) CROSS JOIN LATERAL (
    SELECT l.handler, l.cycle, l.attempt, l.lines, l.key_id FROM hookonce.run_logs l
    WHERE l.event = t.first AND l.id < t.other
          AND l.handler = (SELECT handler FROM hookonce.run_logs WHERE id = t.other)
    ORDER BY l.id DESC LIMIT 1
) AS found
"""

MAX_LOGS_AS_IT_GOES_ON = 64_000
"""Bytes of the newest logs of an event's handlers after which no other is read."""

_LOGS = f"""
SELECT id, handler, cycle, attempt, key_id,
       CASE WHEN age <= %(logs)s AND before < %(bytes)s THEN lines END AS lines
FROM (SELECT *, sum(bytes) FILTER (WHERE age <= %(logs)s) OVER (ORDER BY id DESC) - bytes AS before
      FROM (SELECT *, octet_length(lines) AS bytes, {_AGE} FROM hookonce.run_logs WHERE event = %(event)s) AS l) AS l
ORDER BY id DESC LIMIT {MAX_LOGS}
"""  # noqa: S608  constants
_WHOLE = {"goes_on": False, "tracebacks": MAX_TRACEBACKS, "logs": MAX_LOGS, "bytes": 2**62}
_GOES_ON = {"goes_on": True, "tracebacks": 1, "logs": 1, "bytes": MAX_LOGS_AS_IT_GOES_ON}

_CONFLICTS_OF = """
SELECT id, first_at, last_at, deliveries, headers, body, key_id, fingerprint FROM hookonce.conflicts
WHERE event = %s ORDER BY id
"""

_REPEATS = "SELECT id FROM hookonce.events WHERE repeat_of = %s ORDER BY id LIMIT 100"


def detail(
    connection: psycopg.Connection, event: int, keyring: Keyring, *, goes_on: bool = False
) -> Detail | None:
    """Return everything known of an event as of one moment, opened; None where it is gone.

    With `goes_on` only what changes of an open event, to be asked every second: its states, its attempts, and its
    steps. Of each handler the newest attempt's traceback and lines are read then; body and other events are left out.
    """
    asked = {"event": event, **(_GOES_ON if goes_on else _WHOLE)}
    with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = next(iter(all_as(Event, connection, _EVENT, [event])), None)
        if row is None:
            return None
        runs = [_run(keyring, event, found) for found in cursor.execute(_RUNS, [event])]
        failures = [failure(keyring, event, each) for each in cursor.execute(_FAILURES, asked)]
        written = cursor.execute(_LOGS, asked).fetchall()
        logs = _logs(cursor, keyring, event, written)
        done = steps.of_event(connection, event, keyring)
        known: dict[str, Any] = {
            "event": row,
            "runs": runs,
            "failures": failures,
            "steps": done,
            "logs": logs,
        }
        if goes_on:
            unread = {
                (each["handler"], each["cycle"], each["attempt"]) for each in written if each["lines"] is None
            }
            return Detail(**known, body=None, conflicts=[], repeats=[], unread_logs=unread)
        body = next(iter(all_as(StoredBody, connection, _BODY, [event, row.received_at])), None)
        others = cursor.execute(_CONFLICTS_OF, [event]).fetchall()
        repeats = [found[0] for found in connection.execute(_REPEATS, [event])]
        (why_no_body,) = connection.execute(_WHY_NO_BODY, [event]).fetchone() or ("",)
    return Detail(
        **known,
        body=decrypt_body(keyring, body),
        conflicts=[_other_body(keyring, row, other) for other in others],
        repeats=repeats,
        why_no_body=why_no_body,
    )


def _logs(
    cursor: psycopg.Cursor[dict[str, Any]], keyring: Keyring, event: int, rows: list[dict[str, Any]]
) -> list[AttemptLog]:
    """Open what was logged, the oldest first; the lines of a batch are read where its first event has them."""
    lines = {row["id"]: opened_lines(keyring, event, row) for row in rows if row["lines"] is not None}
    firsts = {number: each["batch"] for number, each in lines.items() if "batch" in each}
    if firsts:
        asked = [[*firsts.values()], [*firsts]]
        kept = {
            row["other"]: opened_lines(keyring, firsts[row["other"]], row)
            for row in cursor.execute(_LOGS_OF_BATCHES, asked)
        }
        for number, first in firsts.items():
            lines[number] |= kept.get(number) or {"unreadable": f"they went with event {first}"}
    return [
        AttemptLog(
            handler=row["handler"], cycle=row["cycle"], attempt=row["attempt"], **lines.get(row["id"], {})
        )
        for row in reversed(rows)
    ]


def _run(keyring: Keyring, event: int, row: dict[str, Any]) -> Run:
    sealed, key = row.pop("sealed_result"), row.pop("key_id")
    result, unreadable = results.opened(
        keyring, result_context(event, row["handler"]), row.pop("result"), sealed, key
    )
    return Run(**row, result=result, unreadable=unreadable)


def _other_body(keyring: Keyring, event: Event, row: dict[str, Any]) -> OtherBody:
    """Open a row of `conflicts`; where that can't be done it has no body, and `unreadable` says why."""
    bond = body_context(event.source, event.event_id, row.pop("fingerprint"))
    body, unreadable = opened(keyring, row.pop("body"), row.pop("key_id"), bond)
    text, row["headers"] = text_and_headers(body, row["headers"])
    shown = as_text(None if unreadable else text)
    return OtherBody(**row, bytes=len(text), unreadable=unreadable, **shown)
