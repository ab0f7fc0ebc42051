"""*Events*: the ledger, newest first, filtered, page by page; the first page refreshes itself."""

import hashlib
import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from flask import Response, make_response, redirect, render_template, request, url_for

from hookonce.receiver.dashboard.blueprint import admin, context, is_fragment
from hookonce.receiver.dashboard.event_form import STATUSES, read_event_form
from hookonce.receiver.ledger.queries import event_lookup
from hookonce.receiver.ledger.queries.events import EventRow
from hookonce.receiver.ledger.queries.events import events as find_events

PAGE_SIZE = 50
_MIN_REFRESH_INTERVAL = 2
_REFRESH_FACTOR = 20
"""A list that takes long to find is looked for less often: a twentieth of the time at most."""


@admin.get("/events")
def events() -> Response:
    """Show a page of events, or its living part if that has changed since."""
    now = datetime.now(UTC)
    form = read_event_form(request.args, now)
    before = request.args.get("before", 0, int) or None
    began = time.monotonic()
    with context().ledger() as connection:
        rows = list(find_events(connection, form.wanted, PAGE_SIZE + 1, before))
    took = time.monotonic() - began
    seen = _digest(rows)
    if is_fragment() and seen == request.args.get("seen"):
        return Response(status=204)
    page = render_template(
        "admin/events_live.html" if is_fragment() else "admin/events.html",
        rows=rows[:PAGE_SIZE],
        next=rows[PAGE_SIZE - 1].id if len(rows) > PAGE_SIZE else None,
        before=before,
        newest=request.args.get("newest", 0, int) if is_fragment() else None,
        seen=seen,
        every=max(_MIN_REFRESH_INTERVAL, math.ceil(took * _REFRESH_FACTOR)),
        form=form,
        now=now,
        statuses=STATUSES,
        sources=sorted(context().settings.sources),
    )
    return make_response(page)


@admin.get("/find")
def find() -> Response:
    """Go to the event that an id, `source:id` or the beginning of one names; to a list if that is not one."""
    typed = request.args.get("id", "").strip()
    try:
        with context().ledger() as connection:
            number = event_lookup.find(connection, typed)
    except event_lookup.Ambiguous:
        number = None
    if number is not None:
        return make_response(redirect(url_for("admin.event", number=number), 303))
    source, mark, rest = typed.partition(":")
    if mark and source in context().settings.sources:
        return make_response(redirect(url_for("admin.events", source=source, id=rest), 303))
    return make_response(redirect(url_for("admin.events", id=typed or None), 303))


def _digest(rows: Sequence[EventRow]) -> str:
    """Return what tells two states of a list apart; times stand in it as they grow, so a minute counts as a change."""
    states = [(row.id, row.status, row.deliveries) for row in rows]
    return hashlib.sha256(repr((states, int(time.time()) // 60)).encode()).hexdigest()[:16]
