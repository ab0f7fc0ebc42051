"""*Rejected*: what was refused, by reason and source, with what failed and what to do."""

from datetime import UTC, datetime

from flask import abort, render_template, request

from providers import Reason
from receiver.admin import bodies
from receiver.admin.shell import admin, desk
from receiver.ledger import desk as lookups
from receiver.ledger import figures, quarantine
from receiver.vocabulary import REFUSALS

PAGE = 50
UNKNOWN = ("It was refused.", "The detail says why.")
LARGEST_ID = (1 << 63) - 1
NAMELESS = "(unknown)"
"""Stands for URLs that no source has."""


@admin.get("/rejected")
def rejected() -> str:
    """Show counts, and a page of refused deliveries."""
    said, reason = (
        request.args.get("source", "").replace("\0", ""),
        request.args.get("reason", "").replace("\0", "") or None,
    )
    source = "" if said == NAMELESS else said or None
    before = min(request.args.get("before", 0, int), LARGEST_ID) or None
    with desk().ledger() as connection:
        counts = figures.rejections(connection)
        held = quarantine.holdings(connection)
        keyring = desk().settings.keyring
        found = lookups.rejected(
            connection, keyring, source=source, reason=reason, before=before, limit=PAGE + 1
        )
        rows = list(found)
    return render_template(
        "admin/rejected.html",
        counts={(name or NAMELESS, why): count for name, why, count in counts},
        names=sorted({name or NAMELESS for name, *_ in counts}),
        whys=sorted({why for _, why, _ in counts}),
        nameless=NAMELESS,
        held=held,
        checked={name: request.args.get(name, type=int) for name in ("looked_at", "genuine", "taken")},
        rows=rows[:PAGE],
        next=rows[PAGE - 1]["id"] if len(rows) > PAGE else None,
        before=before,
        source=said,
        reason=reason,
        reasons=[each.value for each in Reason],
        advice=REFUSALS.get(reason or ""),
        now=datetime.now(UTC),
    )


@admin.get("/rejected/<int:number>")
def refusal(number: int) -> str:
    """Show one refused delivery, as far as it was kept."""
    before = min(number + 1, LARGEST_ID)
    with desk().ledger() as connection:
        rows = list(lookups.rejected(connection, desk().settings.keyring, before=before, limit=1))
    if not rows or rows[0]["id"] != number:
        abort(404, "This delivery is not kept any more; of refused ones only the newest are.")
    return render_template(
        "admin/refusal.html",
        row=rows[0],
        shown=bodies.shown(rows[0]["body_prefix"]),
        advice=REFUSALS.get(rows[0]["reason"], UNKNOWN),
        now=datetime.now(UTC),
    )
