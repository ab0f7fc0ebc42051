"""Tools that run events again: a plan says what would happen, and only its confirmation does it.

A confirmation holds the plan itself, sealed with a key of this process: nothing that somebody wrote into an event can
be one, and what is done is what was shown. It is good for a while and for one replay, however often it is sent.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hookonce.receiver.api.mcp.fence import Answer
from hookonce.receiver.api.mcp.lookups import ClientOf, EventId, Name, Since, Text
from hookonce.receiver.config.durations import parse_duration
from hookonce.receiver.ledger.states import EventStatus

CONFIRMATION_LASTS: Final = timedelta(minutes=10)
_MAX_EVENTS: Final = 200
_SPAN: Final = re.compile("[0-9]{1,4}[smhdw]")
_NEXT: Final = (
    "show your user what would be replayed, and call `replay` with the confirmation only if they agree; "
    "handlers then run again, under the same idempotency keys"
)

Replayable = Literal[
    EventStatus.DEAD, EventStatus.IGNORED, EventStatus.HELD, EventStatus.DONE, EventStatus.WAITING
]


class Replays:
    """The tools, on whatever API `client_of` gives for a call."""

    def __init__(self, client_of: ClientOf) -> None:
        self._client_of = client_of
        self._key = secrets.token_bytes(32)

    @property
    def planning(self) -> tuple[Callable[..., str], ...]:
        """Those that change nothing."""
        return (self.plan_replay, self.plan_bulk_replay)

    def plan_replay(
        self,
        ctx: Context,
        events: Annotated[list[EventId], Field(min_length=1, max_length=_MAX_EVENTS)],
        *,
        again: Annotated[bool, Field(description="run handlers that are done once more")] = False,
    ) -> str:
        """Say what a replay would make of these events, and change nothing. Needs the scope `replay`.

        Handlers that are done (`done` says when) stay so unless `again`; ask your user before you say it.
        """
        wanted = {"events": sorted(set(events)), "again": again}
        found = self._client_of(ctx).post("/replays", {**wanted, "dry_run": True})
        seen = [{"event": outcome["id"], "view": outcome["view"]} for outcome in found["outcomes"]]
        return self._planned({**wanted, "seen": seen}, found)

    def plan_bulk_replay(  # noqa: PLR0913  a filter
        self,
        ctx: Context,
        *,
        status: Replayable,
        source: Name = None,
        type: Text = None,  # noqa: A002  the API's name
        handler: Text = None,
        error: Text = None,
        since: Since = None,
        until: Since = None,
        rate: Annotated[
            float | None, Field(ge=0.01, le=10_000, description="events per second at most")
        ] = None,
    ) -> str:
        """Say how many events a bulk replay of this filter would run again, and change nothing.

        Only what is there now is meant: the plan ends at this moment.
        """
        given = {
            "status": status,
            "source": source,
            "type": type,
            "handler": handler,
            "error": error,
            "since": _moment(since),
            "until": _moment(until) or datetime.now(UTC).isoformat(),
        }
        wanted = {name: value for name, value in given.items() if value is not None}
        found = self._client_of(ctx).get("/event-counts", **wanted)
        known = {"would_be_replayed": found["total"], "kinds": [row["count"] for row in found["data"]]}
        return self._planned(
            {"filter": wanted, "rate": rate}, known, {"types": [row["type"] for row in found["data"]]}
        )

    def replay(self, ctx: Context, confirmation: Annotated[str, Field(max_length=65_536)]) -> str:
        """Do what a plan said, once, if your user agreed. `confirmation` is the plan's."""
        plan = self._opened(confirmation)
        api = self._client_of(ctx)
        key = hashlib.sha256(confirmation.encode()).hexdigest()
        if "events" in plan:
            asked = {name: plan[name] for name in ("events", "again", "seen")}
            return Answer(api.post("/replays", asked, key)).text
        begun = api.post("/bulk-replays", {"filter": plan["filter"], "rate": plan["rate"]}, key)
        return Answer({name: value for name, value in begun.items() if name != "filter"}).text

    def _planned(self, plan: Mapping[str, Any], known: Mapping[str, Any], said: object = None) -> str:
        until = int(time.time() + CONFIRMATION_LASTS.total_seconds())
        sealed = json.dumps({**plan, "until": until, "nonce": secrets.token_hex(8)}).encode()
        text = base64.urlsafe_b64encode(self._seal(sealed) + sealed).decode()
        return Answer({"plan": known, "confirmation": text, "next": _NEXT}, said).text

    def _opened(self, confirmation: str) -> dict[str, Any]:
        try:
            raw = base64.b64decode(confirmation.encode(), altchars=b"-_", validate=True)
        except (ValueError, UnicodeEncodeError):
            raw = b""
        seal, sealed = raw[:32], raw[32:]
        if not hmac.compare_digest(self._seal(sealed), seal):
            raise ToolError("this is no confirmation of a plan that was made here; make a plan first")
        plan: dict[str, Any] = json.loads(sealed)
        if plan["until"] < time.time():
            raise ToolError("this plan is too old; make it again")
        return plan

    def _seal(self, text: bytes) -> bytes:
        return hmac.digest(self._key, text, "sha256")


def _moment(text: str | None) -> str | None:
    """Return a time as it is, and a span as the time that long ago, so that a plan means the same later."""
    if text is None or not _SPAN.fullmatch(text):
        return text
    return (datetime.now(UTC) - parse_duration(text)).isoformat()
