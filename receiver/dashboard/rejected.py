"""*Rejected*: what was refused, by reason and source, with what failed and what to do."""

from flask import abort, render_template, request

from hookonce.providers import Reason
from hookonce.receiver.dashboard.blueprint import admin, context
from hookonce.receiver.dashboard.event_page import body_view
from hookonce.receiver.desk import deliveries
from hookonce.receiver.desk.models import MAX_ID
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.rejected import RejectionPath, explain_rejected, get_rejected, list_quarantine
from hookonce.receiver.desk.stats import rejection_counts
from hookonce.receiver.vocabulary import REFUSALS

PAGE_SIZE = 50
UNKNOWN = ("It was refused.", "The detail says why.")
NAMELESS = "(unknown)"
"""Stands for URLs that no source has."""


@admin.get("/rejected")
def rejected() -> str:
    """Show counts, and a page of refused deliveries."""
    typed, reason = (
        request.args.get("source", "").replace("\0", ""),
        request.args.get("reason", "").replace("\0", "") or None,
    )
    source = "" if typed == NAMELESS else typed or None
    before = min(request.args.get("before", 0, int), MAX_ID) or None
    with context().desk() as here:
        counts = rejection_counts(here)
        held = list_quarantine(here).data
        rows = deliveries.rejected_deliveries(
            here, source=source, reason=reason, before=before, limit=PAGE_SIZE + 1
        )
    return render_template(
        "admin/rejected.html",
        counts={(each.source or NAMELESS, each.reason): each.count for each in counts},
        names=sorted({each.source or NAMELESS for each in counts}),
        whys=sorted({each.reason for each in counts}),
        nameless=NAMELESS,
        held=held,
        checked={name: request.args.get(name, type=int) for name in ("looked_at", "genuine", "taken")},
        rows=rows[:PAGE_SIZE],
        next=rows[PAGE_SIZE - 1].id if len(rows) > PAGE_SIZE else None,
        before=before,
        source=typed,
        reason=reason,
        reasons=[each.value for each in Reason],
        advice=REFUSALS.get(reason or ""),
    )


@admin.get("/rejected/<int:number>")
def refusal(number: int) -> str:
    """Show one refused delivery, as far as it was kept."""
    which = RejectionPath(rejection=max(1, min(number, MAX_ID)))
    try:
        with context().desk() as desk:
            row, found = desk.ask(get_rejected, which=which), desk.ask(explain_rejected, which=which)
    except NotFound:
        abort(404, "This delivery is not kept any more; of refused ones only the newest are.")
    return render_template(
        "admin/refusal.html",
        row=row,
        found=found,
        shown=body_view.body_view(row.body_prefix),
        advice=REFUSALS.get(row.reason, UNKNOWN),
    )
