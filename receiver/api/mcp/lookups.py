"""Tools that read: what came, what became of it, what is wrong, and what the words mean."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hookonce.receiver.api.mcp.api_client import ApiClient
from hookonce.receiver.api.mcp.fence import Answer
from hookonce.receiver.desk.filters import Status
from hookonce.receiver.vocabulary import EVENT_STATUSES, REFUSALS, RUN_STATUSES, TERMS, UNAVAILABLE

ClientOf = Callable[[Context], ApiClient]
"""Gives the API under the token of whoever asks."""

EventId = Annotated[
    int, Field(ge=1, le=(1 << 63) - 1, description="the id in the ledger, as list_events gives it")
]
SenderId = Annotated[
    str,
    Field(
        pattern="^[A-Za-z0-9][A-Za-z0-9_.:@+=|-]{0,254}$",
        description="a sender's id, how one begins if it is unique, or source:id",
    ),
]
Name = Annotated[str | None, Field(pattern="^[a-z0-9][a-z0-9_-]{0,62}$", description="its name")]
Text = Annotated[str | None, Field(max_length=255)]
Since = Annotated[
    str | None, Field(max_length=40, description="a span (90s, 15m, 2h, 7d) or a time (2026-01-31T14:00:00Z)")
]
Reason = Annotated[str | None, Field(pattern="^[a-z_]{1,40}$", description="as bad_signature or stale")]
Rows = Annotated[int, Field(ge=1, le=200, description="how many rows at most")]
Cursor = Annotated[str | None, Field(pattern="^[0-9a-f]{16}$", description="`next` of the page before")]
Hours = Annotated[float, Field(gt=0, le=24 * 365)]

_OTHERS_EVENT: Final = ("type", "event_id", "account")
_OTHERS_RUN: Final = ("error", "result")
_OTHERS_STATS: Final = ("alerts", "breakers", "batches", "paused")
"""What alerts and errors say; `overview` and `list_handlers` tell it between the marks."""
_OTHERS_FAILURE: Final = ("error", "traceback")


class Lookups:
    """The tools, on whatever API `client_of` gives for a call."""

    def __init__(self, client_of: ClientOf) -> None:
        self._client_of = client_of

    @property
    def tools(self) -> tuple[Callable[..., str], ...]:
        """All of them, in the order in which they are shown."""
        return (
            self.overview,
            self.list_events,
            self.count_events,
            self.show_event,
            self.read_body,
            self.why_dead,
            self.what_is_silent,
            self.list_rejected,
            self.list_conflicts,
            self.list_quarantine,
            self.list_sources,
            self.list_handlers,
            self.list_alerts,
            self.list_changes,
            self.list_bulk_replays,
            self.explain,
            self.who_am_i,
        )

    def overview(self, ctx: Context) -> str:
        """Say how the inbox is: events by source and status, rejections, what waits, alerts, pauses. Start here."""
        api = self._client_of(ctx)
        alerts = api.get("/alerts", state="open")["data"]
        known = {
            "stats": _without(api.get("/stats"), *_OTHERS_STATS),
            "open_alerts": [_without(alert, "detail") for alert in alerts],
            "paused": api.get("/pauses")["data"],
        }
        return Answer(known, [_only(alert, "id", "detail") for alert in alerts]).text

    def list_events(  # noqa: PLR0913  a filter
        self,
        ctx: Context,
        *,
        source: Name = None,
        status: Status | None = None,
        type: Text = None,  # noqa: A002  the API's name
        account: Text = None,
        event_id: Annotated[Text, Field(description="how the sender's id begins")] = None,
        handler: Annotated[Text, Field(description="with a dead run of this handler")] = None,
        error: Annotated[Text, Field(description="with a dead run of this error; `*` is any text")] = None,
        since: Since = None,
        until: Since = None,
        limit: Rows = 50,
        cursor: Cursor = None,
    ) -> str:
        """List events, newest first; `type` may hold `*`. Without a filter: the latest."""
        page = self._client_of(ctx).get(
            "/events",
            source=source,
            status=status,
            type=type,
            account=account,
            event_id=event_id,
            handler=handler,
            error=error,
            since=since,
            until=until,
            limit=limit,
            cursor=cursor,
        )
        return _rows(page, _OTHERS_EVENT).text

    def count_events(  # noqa: PLR0913  a filter
        self,
        ctx: Context,
        *,
        source: Name = None,
        status: Status | None = None,
        type: Text = None,  # noqa: A002  the API's name
        account: Text = None,
        handler: Text = None,
        error: Text = None,
        since: Since = None,
        until: Since = None,
    ) -> str:
        """Count the events of a filter by type and status, the most frequent first."""
        found = self._client_of(ctx).get(
            "/event-counts",
            source=source,
            status=status,
            type=type,
            account=account,
            handler=handler,
            error=error,
            since=since,
            until=until,
        )
        known = {"total": found["total"], "kinds": [_without(row, "type") for row in found["data"]]}
        return Answer(known, {"types": [row["type"] for row in found["data"]]}).text

    def show_event(self, ctx: Context, event: EventId | SenderId) -> str:
        """Show an event: what its status means, its runs and failed attempts, its headers. The body: read_body."""
        found = self._client_of(ctx).get(f"/events/{quote(str(event), safe='')}")
        runs, failures = found.pop("runs"), found.pop("failures")
        conflicts = found.pop("conflicts")
        said = {name: found.pop(name) for name in (*_OTHERS_EVENT, "url", "headers")}
        known = {
            **found,
            "means": EVENT_STATUSES[found["status"]],
            "runs": [_without(run, *_OTHERS_RUN) for run in runs],
            "failures": [_without(failure, "frames", *_OTHERS_FAILURE) for failure in failures],
            "conflicts": [_without(other, "headers") for other in conflicts],
        }
        said["runs"] = [_only(run, "handler", *_OTHERS_RUN) for run in runs]
        said["failures"] = [_only(failure, "handler", "attempt", *_OTHERS_FAILURE) for failure in failures]
        return Answer(known, said).text

    def read_body(self, ctx: Context, event: EventId | SenderId) -> str:
        """Show the body of an event as text: the first 16,000 characters. It may hold personal data."""
        body, is_whole = self._client_of(ctx).body(str(event))
        known = {"event": event, "bytes": len(body), "is_whole": is_whole}
        return Answer(known, body.decode(errors="backslashreplace")).text

    def why_dead(self, ctx: Context) -> str:
        """Say of what events died: dead runs by handler and error, with the ids of some.

        `handler` and `error` of a group find its events in list_events and plan_bulk_replay.
        """
        found = self._client_of(ctx).get("/dead-letters")
        groups = [{"group": number, **group} for number, group in enumerate(found["data"], 1)]
        known = {
            "groups": [_without(group, "error", "example") for group in groups],
            "is_complete": found["is_complete"],
        }
        return Answer(known, [_only(group, "group", "error", "example") for group in groups]).text

    def what_is_silent(self, ctx: Context, hours: Hours = 24) -> str:
        """Say which sources brought nothing for so many hours, or less than they always do, or are paused."""
        api = self._client_of(ctx)
        before = datetime.now(UTC) - timedelta(hours=hours)
        alerts = [
            each for each in api.get("/alerts", state="open")["data"] if each["kind"] == "source_silent"
        ]
        missed = {alert["subject"] for alert in alerts}
        sources = [
            _only(source, "name", "provider", "is_paused", "last_delivery_at") for source in _sources(api)
        ]
        silent = [
            {**source, "less_than_always": source["name"] in missed}
            for source in sources
            if source["name"] in missed or _is_before(source["last_delivery_at"], before)
        ]
        known = {
            "asked": f"nothing since {before:%Y-%m-%dT%H:%M:%SZ}",
            "silent": silent,
            "paused": [source["name"] for source in sources if source["is_paused"]],
            "sources_in_all": len(sources),
        }
        return Answer(known, [_only(alert, "subject", "detail") for alert in alerts]).text

    def list_rejected(  # noqa: PLR0913  a filter
        self,
        ctx: Context,
        *,
        source: Name = None,
        reason: Reason = None,
        since: Since = None,
        limit: Rows = 20,
        cursor: Cursor = None,
    ) -> str:
        """List deliveries that were refused, newest first, with what each reason means and what to do about it."""
        page = self._client_of(ctx).get(
            "/rejected", source=source, reason=reason, since=since, limit=limit, cursor=cursor
        )
        answer = _rows(page, ("detail", "headers", "body_prefix"))
        reasons = sorted({row["reason"] for row in page["data"]})
        advice = {reason: REFUSALS[reason]._asdict() for reason in reasons if reason in REFUSALS}
        return Answer({**answer.known, "reasons": advice}, answer.said).text

    def list_conflicts(self, ctx: Context, source: Name = None, since: Since = None, limit: Rows = 20) -> str:
        """List other bodies that came under the id of an event, newest first; they were kept and not run."""
        page = self._client_of(ctx).get("/conflicts", source=source, since=since, limit=limit)
        return _rows(page, ("event_id", "type")).text

    def list_quarantine(self, ctx: Context) -> str:
        """Say how many refused deliveries are kept whole, by source and reason; `hookonce reverify` takes them in."""
        return Answer(self._client_of(ctx).get("/quarantine")["data"]).text

    def list_sources(self, ctx: Context) -> str:
        """List the configured sources: URL, provider, use of each secret by its place, pauses, latest delivery."""
        return Answer(_sources(self._client_of(ctx))).text

    def list_handlers(self, ctx: Context) -> str:
        """List handlers: paused, failing in a row, waiting for a limit, how their batches went."""
        handlers = self._client_of(ctx).get("/handlers")["data"]
        parts = ("breaker", "batches")
        known = [
            {**handler, **{part: handler[part] and _without(handler[part], "error") for part in parts}}
            for handler in handlers
        ]
        said = [
            {"name": handler["name"], "of": part, "error": handler[part]["error"]}
            for handler in handlers
            for part in parts
            if handler[part] and handler[part]["error"] is not None
        ]
        return Answer(known, said).text

    def list_alerts(self, ctx: Context, state: Literal["open", "all"] = "open", limit: Rows = 20) -> str:
        """List what is wrong now, or `all` that ever was, newest first."""
        return _rows(self._client_of(ctx).get("/alerts", state=state, limit=limit), ("detail",)).text

    def list_changes(self, ctx: Context, limit: Rows = 20, cursor: Cursor = None) -> str:
        """List what people and programs changed, newest first: the audit."""
        page = self._client_of(ctx).get("/audit", limit=limit, cursor=cursor)
        return _rows(page, ("subject", "detail")).text

    def list_bulk_replays(self, ctx: Context, limit: Rows = 5) -> str:
        """List bulk replays, newest first, and how far each is."""
        return _rows(self._client_of(ctx).get("/bulk-replays", limit=limit), ("filter",)).text

    def explain(self, ctx: Context, word: Annotated[str, Field(max_length=60)]) -> str:  # noqa: ARG002  every tool's
        """Say what a word of the inbox means: a status, a reason of a rejection, a term as window or lease."""
        wanted = word.strip().lower()
        found = {
            "event status": {str(status): text for status, text in EVENT_STATUSES.items()}.get(wanted),
            "run status": {str(status): text for status, text in RUN_STATUSES.items()}.get(wanted),
            "term": TERMS.get(wanted),
            "reason": _advice(wanted),
        }
        known = {kind: meaning for kind, meaning in found.items() if meaning}
        if not known:
            every = sorted({*EVENT_STATUSES, *TERMS, *REFUSALS, *UNAVAILABLE})
            raise ToolError(f"no such word; there are: {', '.join(every)}")
        return Answer(known).text

    def who_am_i(self, ctx: Context) -> str:
        """Show the name and the scopes of the token in use; replays need the scope `replay`."""
        return Answer(self._client_of(ctx).get("/token")).text


def _advice(reason: str) -> Mapping[str, str] | None:
    refusal = REFUSALS.get(reason) or UNAVAILABLE.get(reason)
    return refusal._asdict() if refusal else None


def _sources(api: ApiClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/sources")["data"]
    return found


def _rows(page: Mapping[str, Any], others: Iterable[str]) -> Answer:
    """Return a page whose `others` are fields that somebody else wrote."""
    known = {"data": [_without(row, *others) for row in page["data"]], "next": page["next"]}
    return Answer(known, [_only(row, "id", *others) for row in page["data"]])


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _only(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names if row.get(name) is not None or name == "last_delivery_at"}


def _is_before(text: str | None, moment: datetime) -> bool:
    return text is None or datetime.fromisoformat(text) < moment
