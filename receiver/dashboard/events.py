"""*Events*: the ledger, newest first, filtered, page by page; the first page refreshes itself.

What is asked for stands in the address, so a view is kept by keeping its address. A page is there in time whatever
is asked for: it says how far back it looked, and its own next request, or a link, goes on from there.
"""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Response, make_response, render_template, request

from hookonce.receiver.dashboard.blueprint import admin, context, is_fragment
from hookonce.receiver.dashboard.event_form import SPANS, STATUSES, EventForm, read_event_form
from hookonce.receiver.dashboard.event_selection import said_of
from hookonce.receiver.desk.events import choices_of
from hookonce.receiver.desk.filters import hint
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.rows import Event
from hookonce.receiver.desk.searches import Listing, look, look_into
from hookonce.receiver.desk.stats import status_counts

PAGE_SIZE = 50
FIRST_LOOK = timedelta(milliseconds=40)
"""How long a page looks before it shows what it has."""
GOING_ON = timedelta(seconds=1)
"""How long it looks at each further request."""
MAX_NAME_LENGTH = 60
_MIN_REFRESH_INTERVAL = 2
_REFRESH_FACTOR = 20
"""A list that takes long to find is looked for less often: a twentieth of the time at most."""


@admin.get("/events")
def events() -> Response:
    """Show a page of events, its living part if that has changed since, or what a search found further back."""
    now = datetime.now(UTC)
    form = read_event_form(request.args, now)
    began = time.monotonic()
    with context().desk() as here:
        listing = _listing(here, form)
        took = time.monotonic() - began
        seen = _digest(listing.rows)
        doubt = hint(here, form.wanted, listing.rows)
        if is_fragment() and seen == request.args.get("seen"):
            return Response(status=204)
        page: dict[str, Any] = {} if is_fragment() else _around(here, form)
    template = "further" if is_fragment() and "on" in request.args else "live" if is_fragment() else ""
    html = render_template(
        f"admin/events_{template}.html" if template else "admin/events.html",
        listing=listing,
        before=request.args.get("before", 0, int) or None,
        after=request.args.get("after", 0, int) or None,
        newest=request.args.get("newest", type=int) if is_fragment() else None,
        on=request.args.get("on", 0, int),
        seen=seen,
        every=max(_MIN_REFRESH_INTERVAL, math.ceil(took * _REFRESH_FACTOR)),
        form=form,
        view=_view(form),
        hint=doubt,
        now=now,
        **page,
    )
    return make_response(html)


def _listing(here: Desk, form: EventForm) -> Listing:
    before, after = (request.args.get(name, 0, int) or None for name in ("before", "after"))
    budget = GOING_ON if "on" in request.args else FIRST_LOOK
    if form.needle is None:
        return look(here, form.wanted, PAGE_SIZE, budget, before=before, after=after)
    if not form.needle or form.mistakes:
        return Listing(())
    return look_into(here, form.wanted, form.needle, PAGE_SIZE, budget, before=before)


def _around(here: Desk, form: EventForm) -> dict[str, Any]:
    """Return what stands around the list: what there is to choose from, and how many are in which status."""
    return {
        "statuses": STATUSES,
        "menus": (("status", {each: each for each in STATUSES}, "Any status"), ("since", SPANS, "Any time")),
        "counts": _counts(here, form),
        "choices": choices_of(here),
        "said": said_of(request.args.get("said", "")),
    }


def _counts(here: Desk, form: EventForm) -> Counter[str] | None:
    """Count by status; None where more than a source and a status is asked for, which nobody counts."""
    if form.typed.keys() - {"source", "status"}:
        return None
    counted: Counter[str] = Counter()
    for each in status_counts(here):
        if form.wanted.source in {None, each.source}:
            counted[each.status] += each.count
    counted[""] = counted.total()
    return counted


def _view(form: EventForm) -> dict[str, str]:
    """Return the fields of the address that make up this view: the filter, and the name somebody gave it."""
    name = request.args.get("view", "").replace("\0", "").strip()[:MAX_NAME_LENGTH]
    return form.typed | ({"view": name} if name else {})


def _digest(rows: Sequence[Event]) -> str:
    """Return what tells two states of a list apart; times stand in it as they grow, so a minute counts as a change."""
    states = [(row.id, row.status, row.deliveries) for row in rows]
    return hashlib.sha256(repr((states, int(time.time()) // 60)).encode()).hexdigest()[:16]
