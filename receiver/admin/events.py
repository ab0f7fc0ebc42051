"""*Events*: the ledger, newest first, filtered, page by page; the first page refreshes itself."""

import hashlib
import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from flask import Response, make_response, redirect, render_template, request, url_for

from receiver.admin.asked import STATUSES, asked
from receiver.admin.shell import admin, desk, is_fragment
from receiver.ledger import desk_find
from receiver.ledger.desk import EventRow
from receiver.ledger.desk import events as found_events

PAGE = 50
_SOONEST = 2
_SHARE = 20
"""A list that takes long to find is looked for less often: a twentieth of the time at most."""


@admin.get("/events")
def events() -> Response:
    """Show a page of events, or its living part if that has changed since."""
    now = datetime.now(UTC)
    form = asked(request.args, now)
    before = request.args.get("before", 0, int) or None
    began = time.monotonic()
    with desk().ledger() as connection:
        rows = list(found_events(connection, form.wanted, PAGE + 1, before))
    took = time.monotonic() - began
    seen = _digest(rows)
    if is_fragment() and seen == request.args.get("seen"):
        return Response(status=204)
    page = render_template(
        "admin/events_live.html" if is_fragment() else "admin/events.html",
        rows=rows[:PAGE],
        next=rows[PAGE - 1].id if len(rows) > PAGE else None,
        before=before,
        newest=request.args.get("newest", 0, int) if is_fragment() else None,
        seen=seen,
        every=max(_SOONEST, math.ceil(took * _SHARE)),
        form=form,
        now=now,
        statuses=STATUSES,
        sources=sorted(desk().settings.sources),
    )
    return make_response(page)


@admin.get("/find")
def find() -> Response:
    """Go to the event that an id, `source:id` or the beginning of one names; to a list if that is not one."""
    said = request.args.get("id", "").strip()
    try:
        with desk().ledger() as connection:
            number = desk_find.find(connection, said)
    except desk_find.Ambiguous:
        number = None
    if number is not None:
        return make_response(redirect(url_for("admin.event", number=number), 303))
    source, mark, rest = said.partition(":")
    if mark and source in desk().settings.sources:
        return make_response(redirect(url_for("admin.events", source=source, id=rest), 303))
    return make_response(redirect(url_for("admin.events", id=said or None), 303))


def _digest(rows: Sequence[EventRow]) -> str:
    """Tell two states of a list apart; times stand in it as they grow, so a minute counts as a change."""
    told = [(row.id, row.status, row.deliveries) for row in rows]
    return hashlib.sha256(repr((told, int(time.time()) // 60)).encode()).hexdigest()[:16]
