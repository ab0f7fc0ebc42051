"""Where an alert leads: the page on which something can be done about it, and what to do there."""

from flask import url_for

from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.states import EventStatus


def alert_link(alert: Alert) -> tuple[str, str]:
    """Return an address and what to do there."""
    subject = alert.subject or None
    if alert.kind == "dead_runs":
        events = url_for("admin.events", status=EventStatus.DEAD, source=subject)
        return events, "See what died, mend the cause, replay"
    if alert.kind == "signature_failures":
        return url_for("admin.rejected", source=subject), "See what was refused, compare the secret"
    if alert.kind in {"conflicts", "duplicates"}:
        return url_for("admin.events", source=subject, since="24h"), "See what came, and ask its sender why"
    if alert.kind == "retried_for":
        events = url_for("admin.events", status=EventStatus.WAITING, source=subject)
        return events, "See what is tried again, and by which error it fails"
    if alert.kind == "lost_leases":
        return url_for("admin.handlers"), "See which handlers take long, and give workers time to end"
    if alert.kind == "source_silent" and subject:
        return url_for("admin.source", name=subject), "See the source, and whether its sender has our URL"
    if alert.kind == "oldest_due":
        return url_for("admin.handlers"), "See what holds handlers up, start more workers"
    return url_for("admin.overview"), "See the servers' state on the overview"
