"""Pulls: events in the order of the ledger, for `hookonce dev --from` and `hookonce listen` on a person's own machine.

A pull begins with a note in the audit, which says what may be taken; pages follow by a cursor. Bodies, headers and URLs
come along only under a token with the scope `bodies`, redacted and masked as the configuration says *now*, on top of
what was done when they were stored.
"""

import hashlib
from base64 import b64encode
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.models import IdInPath, Name, RequestModel, Text, Time
from hookonce.receiver.desk.refusals import Conflict, NotFound
from hookonce.receiver.desk.registry import Desk, action
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.decryption import StoredBody
from hookonce.receiver.ledger.queries import feed
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.feed import OtherLedger, Position
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.privacy.redaction import MASK

STATEMENT_PAUSE = 0.5
"""Seconds that a client leaves for each statement that its request has cost: two a second at most."""
_TOKEN_AND_NOTE = 2

FeedCursor = Annotated[
    str, Field(pattern=f"^{feed.POSITION}$", max_length=16_200, description="as it was given, unchanged")
]


class PullRequest(RequestModel):
    """The events to pull; a field that is left out takes all."""

    source: Name | None = None
    type: Text | None = Field(None, description="`*` stands for any text: `invoice.*`")
    since: Time | None = Field(
        None, description="begin with what was received then; else with what comes from now on"
    )
    cursor: FeedCursor | None = Field(None, description="go on there, whatever `since` says")


class Pull(ResponseModel):
    """A pull that has begun; for 24 hours, and then there is to be another."""

    id: Identifier
    cursor: Ours
    has_bodies: bool = Field(description="whether the token lets bodies, headers and URLs leave")
    oldest_at: datetime | None = Field(description="when the oldest event came that is still there")
    leaves_out: list[Ours] = Field(description="providers whose events never leave")


class PullPath(RequestModel):
    """A pull by its number."""

    pull: IdInPath


class PulledEventPath(PullPath):
    """An event of a pull."""

    event: IdInPath


class PullQuery(RequestModel):
    """The position to go on at."""

    cursor: FeedCursor


class PulledEvent(ResponseModel):
    """An event with its delivery, as far as it may leave."""

    id: Identifier
    source: Ours
    provider: Ours
    event_id: str
    type: str
    account: str | None
    is_test: bool
    id_is_signed: bool
    is_element: bool = Field(description="it is one of several events that came in one body")
    unreadable: str | None = Field(description="why its provider module could not read it")
    received_at: datetime
    occurred_at: datetime | None
    url: str | None
    headers: dict[str, str] | None
    body_b64: str | None
    fingerprint: Ours | None = Field(
        description="a SHA-256 in hexadecimal; of what leaves, if that is redacted"
    )
    is_redacted: bool = Field(description="the body is not what the sender has sent")
    missing: Literal["scope", "retention", "key"] | None = Field(
        description="why it has no body: the token lacks `bodies`, it is not kept any more, or it can't be decrypted"
    )


class PulledPage(ResponseModel):
    """Events in the order of the ledger; maybe none, though there are more."""

    data: list[PulledEvent]
    next: Ours = Field(description="the cursor of the page after")
    behind: int = Field(description="how many events come behind this page, at most")
    newest_at: datetime | None
    wait: float = Field(description="seconds to wait before the page after is asked for")


@action(scope=Scope.READ)
def begin_pull(desk: Desk, asked: PullRequest) -> Pull:
    """Begin to pull events in the order of the ledger; noted in the audit, once for all pages.

    Nothing there is changed by a pull: no run, no step and no command is done for it.
    """
    position = None if asked.cursor is None else Position.parse(asked.cursor)
    try:
        begun = feed.begin(desk.connection, asked.since, position)
    except OtherLedger as error:
        raise Conflict(f"{error}; begin again with `since`", code="other_ledger") from None
    said = {name: value for name in ("source", "type") if (value := getattr(asked, name))}
    if asked.since:
        said["since"] = asked.since.isoformat()
    has_bodies = desk.allows(Scope.BODIES)
    detail = {"filter": said, "after": begun.position.after, "bodies": has_bodies}
    return Pull(
        id=desk.note("pull", "events", detail),
        cursor=str(begun.position),
        has_bodies=has_bodies,
        oldest_at=begun.oldest_at,
        leaves_out=list(feed.LEFT_OUT),
    )


@action(scope=Scope.READ)
def pull_events(desk: Desk, which: PullPath, asked: PullQuery) -> PulledPage:
    """Give the next events of a pull, each once and in order, those that were committed late among them."""
    wanted = _wanted(desk, which.pull)
    position = Position.parse(asked.cursor)
    try:
        page, statements = feed.page(desk.connection, wanted, position), 1
        if (
            not page.rows and page.position.settled > page.position.after
        ):  # it is settled since that statement
            page, statements = feed.page(desk.connection, wanted, page.position), 2
    except OtherLedger as error:
        raise NotFound(f"{error}; begin another pull", code="other_ledger") from None
    return PulledPage(
        data=[_pulled(desk, row) for row in page.rows],
        next=str(page.position),
        behind=page.behind,
        newest_at=page.newest_at,
        wait=(statements + _TOKEN_AND_NOTE) * STATEMENT_PAUSE,
    )


@action(scope=Scope.READ)
def pull_event(desk: Desk, which: PulledEventPath) -> PulledEvent:
    """Give one event again, as a pull gives it: of the source and type that were asked for, and whenever it came."""
    row = feed.one(desk.connection, _wanted(desk, which.pull), which.event)
    if row is None:
        raise NotFound(f"no event of this pull that may leave has the ledger id {which.event}")
    return _pulled(desk, row)


def _wanted(desk: Desk, pull: int) -> Filter:
    wanted = feed.allowed(desk.connection, desk.who, pull)
    if wanted is None:
        raise NotFound(f"this token has no pull {pull}, or it is over; begin another", code="pull_over")
    return wanted


def _pulled(desk: Desk, row: dict[str, Any]) -> PulledEvent:
    """Make of a row what may leave of it.

    The digest of a body that was redacted stays here: a short value that was taken out could be guessed by it.
    """
    key, body = row.pop("key_id"), row.pop("body")
    known = {name: row[name] for name in PulledEvent.model_fields if name in row}
    known |= {"fingerprint": None, "url": None, "headers": None, "body_b64": None, "is_redacted": False}
    if not desk.allows(Scope.BODIES):
        return PulledEvent(**known, missing="scope")
    if not row["has_body"]:
        return PulledEvent(**known, missing="retention")
    kept, is_element = bytes(row["fingerprint"]), row["is_element"]
    stored = StoredBody(
        row["url"], row["headers"], body, key, row["source"], row["event_id"], kept, is_element
    )
    found = deliveries.pulled(desk, stored, row["provider"])
    if found is None:
        return PulledEvent(**known, missing="key")
    (shown, is_changed), source = found, desk.settings.sources.get(row["source"])
    leaving, volatile = bytes(shown.body), tuple(source.provider.volatile) if source else ()
    may_be_redacted = (source is not None and source.redact) or MASK.encode() in leaving
    is_redacted = is_changed or bool(may_be_redacted and fingerprint(leaving, volatile) != kept)
    known |= {
        "url": shown.url,
        "headers": shown.headers,
        "body_b64": b64encode(leaving).decode(),
        "is_redacted": is_redacted,
        "fingerprint": hashlib.sha256(leaving).hexdigest() if is_redacted else kept.hex(),
    }
    return PulledEvent(**known, missing=None)
