"""The samples that `hookonce demo` sends, and what must become of each.

Every delivery goes over HTTP, signed as its sender would; the handlers (`jobs/demo_handlers.py`) write a row
each time their work counts. The proof is in the tables afterwards.
"""

import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
import requests

from hookonce.receiver.dev.stack import POLL_INTERVAL, Stack, session
from hookonce.receiver.ledger.states import EventStatus
from hookonce.receiver.samples.documents import Document, fresh

HANDLERS = "hookonce.jobs.demo_handlers"
END_TIMEOUT = timedelta(seconds=30)
ANSWER_TIMEOUT = timedelta(seconds=10)
STALE_AGE = timedelta(hours=1)

_TABLE = "CREATE TABLE demo_effects (source text NOT NULL, event_id text NOT NULL, attempt int NOT NULL)"
_UNFINISHED = "SELECT count(*) FROM hookonce.queue"
_STORED = """
SELECT e.event_id, e.status, coalesce(sum(r.attempts), 0)::int,
       (SELECT count(*) FROM demo_effects d WHERE d.source = e.source AND d.event_id = e.event_id)
FROM hookonce.event_states e LEFT JOIN hookonce.run_states r ON r.event = e.id
GROUP BY e.id, e.event_id, e.status, e.source
"""


@dataclass(frozen=True)
class ExpectedOutcome:
    """The outcome of an event: its status (`-` if it was not stored), attempts, and how often its effect is there."""

    status: str
    attempts: int = 0
    effects: int = 0


NOT_STORED = ExpectedOutcome("-")
DONE = ExpectedOutcome(EventStatus.DONE, 1, 1)


@dataclass(frozen=True)
class Sample:
    """One delivery to send, what it must be answered, and what must become of its event.

    `again` names the sample whose delivery this one is again; `sender` is who signs it: the genuine sender, a
    forger with another secret, or the genuine one an hour ago.
    """

    what: str
    source: str
    type: str
    answer: str
    fate: ExpectedOutcome
    again: str = ""
    sender: str = "genuine"


SAMPLES = (
    Sample("an invoice was paid", "stripe", "invoice.paid", "200 accepted", DONE),
    Sample(
        "the same once more", "stripe", "invoice.paid", "200 duplicate", DONE, again="an invoice was paid"
    ),
    Sample("forged", "stripe", "invoice.paid", "401 bad_signature", NOT_STORED, sender="forger"),
    Sample("an hour old", "stripe", "invoice.paid", "401 stale", NOT_STORED, sender="late"),
    Sample(
        "handler fails twice",
        "stripe",
        "customer.subscription.updated",
        "200 accepted",
        ExpectedOutcome(EventStatus.DONE, 3, 1),
    ),
    Sample(
        "handler always fails",
        "stripe",
        "charge.failed",
        "200 accepted",
        ExpectedOutcome(EventStatus.DEAD, 2),
    ),
    Sample(
        "handler gives up",
        "stripe",
        "charge.dispute.created",
        "200 accepted",
        ExpectedOutcome(EventStatus.DEAD, 1),
    ),
    Sample("commits were pushed", "github", "push", "200 accepted", DONE),
    Sample("redelivered by hand", "github", "push", "200 duplicate", DONE, again="commits were pushed"),
    Sample("a pull request", "github", "pull_request.opened", "200 accepted", DONE),
    Sample("forged", "github", "push", "401 bad_signature", NOT_STORED, sender="forger"),
    Sample(
        "nobody handles it", "github", "star.created", "200 accepted", ExpectedOutcome(EventStatus.IGNORED)
    ),
)


@dataclass(frozen=True)
class Found:
    """The answer to a sample, and what became of its event."""

    sample: Sample
    answer: str
    fate: ExpectedOutcome

    @property
    def is_right(self) -> bool:
        """Whether both are what they must be."""
        return (self.answer, self.fate) == (self.sample.answer, self.sample.fate)


def prepare(stack: Stack) -> None:
    """Make the table that the handlers write to."""
    with psycopg.connect(stack.environ["DATABASE_URL"]) as connection:
        connection.execute(_TABLE)


def play(stack: Stack, ended: threading.Event) -> list[Found]:
    """Send every sample, wait until all events have ended (or a deadline), and tell what was found."""
    documents: list[Document] = []
    answers: list[str] = []
    with session() as client:
        for sample in SAMPLES:
            known = (
                made for other, made in zip(SAMPLES, documents, strict=False) if other.what == sample.again
            )
            documents.append(next(known, None) or _document(stack, sample))
            answers.append(_send(client, stack, sample, documents[-1]))
    with psycopg.connect(stack.environ["DATABASE_URL"], autocommit=True) as connection:
        _wait_for_runs(connection, ended)
        fates = _outcomes(connection)
    return [
        Found(sample, answer, fates.get(document.event_id, NOT_STORED))
        for sample, answer, document in zip(SAMPLES, answers, documents, strict=True)
    ]


def _document(stack: Stack, sample: Sample) -> Document:
    provider = stack.settings.sources[sample.source].provider
    return fresh(provider, sample.type, datetime.now(UTC), f"evt_{uuid.uuid4().hex[:24]}")


def _send(client: requests.Session, stack: Stack, sample: Sample, document: Document) -> str:
    source = stack.settings.sources[sample.source]
    now = datetime.now(UTC) - (STALE_AGE if sample.sender == "late" else timedelta())
    secret = source.secrets[0] + ("0" if sample.sender == "forger" else "")
    delivery = document.delivery(secret, now, stack.hook(sample.source))
    reply = client.post(
        stack.hook(sample.source),
        data=delivery.body,
        headers=dict(delivery.headers),
        timeout=ANSWER_TIMEOUT.total_seconds(),
    )
    said = reply.json()
    return f"{reply.status_code} {said.get('code') or said.get('status')}"


def _wait_for_runs(connection: psycopg.Connection, ended: threading.Event) -> None:
    deadline = time.monotonic() + END_TIMEOUT.total_seconds()
    while connection.execute(_UNFINISHED).fetchone() != (0,) and time.monotonic() < deadline:
        if ended.wait(POLL_INTERVAL.total_seconds()):
            return


def _outcomes(connection: psycopg.Connection) -> Mapping[str, ExpectedOutcome]:
    rows: Sequence[tuple[str, str, int, int]] = connection.execute(_STORED).fetchall()
    return {
        event_id: ExpectedOutcome(status, attempts, effects) for event_id, status, attempts, effects in rows
    }
