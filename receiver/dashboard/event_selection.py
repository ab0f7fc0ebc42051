"""Several events of a list at once: replayed, or released if they are held."""

from collections import Counter
from urllib.parse import parse_qsl, urlencode

from flask import Response, abort, make_response, redirect, request, url_for

from hookonce.receiver.dashboard.blueprint import actor, admin, context
from hookonce.receiver.ledger.replay import events as event_replays
from hookonce.receiver.ledger.replay.events import GOOD, ReplayOutcome
from hookonce.receiver.redis.workers import notify

MAX_CHOSEN = 200
_BAD = frozenset({ReplayOutcome.BODY_DROPPED, ReplayOutcome.UNREADABLE})


@admin.post("/events/replay")
def replay_chosen() -> Response:
    """Run the chosen events again, then show the same list."""
    chosen = {number for number in request.form.getlist("event", int) if 0 < number < 1 << 63}
    if not chosen or len(chosen) > MAX_CHOSEN:
        abort(400, f"Select up to {MAX_CHOSEN} events; to replay more, replay all that match a filter.")
    with context().ledger() as connection:
        outcomes = Counter(each.fate for each in event_replays.replay(connection, sorted(chosen), actor()))
    if any(outcomes[fate] for fate in GOOD):
        notify(context().settings.redis_url)
    said = ",".join(f"{number} {fate}" for fate, number in sorted(outcomes.items()))
    back = [(name, text) for name, text in parse_qsl(request.form.get("view", "")) if name != "said"]
    where = url_for("admin.events")
    return make_response(redirect(f"{where}?{urlencode([*back, ('said', said)])}", 303))


def said_of(said: str) -> tuple[str, str] | None:
    """Return what `replay_chosen` said as a notice; None for anything else."""
    counted: dict[str, int] = {}
    for part in said.split(","):
        number, _, fate = part.partition(" ")
        if number.isascii() and number.isdecimal() and fate in list(ReplayOutcome):
            counted[fate] = min(int(number[:6]), MAX_CHOSEN)
    if not counted:
        return None
    kind = "good" if counted.keys() <= GOOD else "bad" if counted.keys() & _BAD else "warn"
    told = ", ".join(f"{number} {fate}" for fate, number in counted.items())
    hint = " Open an event that is done to run it once more." if ReplayOutcome.DONE in counted else ""
    return kind, f"Of the selected events: {told}.{hint}"
