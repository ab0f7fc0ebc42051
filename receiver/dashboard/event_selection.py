"""Several events of a list at once: replayed, or released if they are held."""

from collections import Counter
from urllib.parse import parse_qsl

from flask import Response, abort, request

from hookonce.receiver.dashboard.blueprint import admin, ask, to_page
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.refusals import Conflict
from hookonce.receiver.desk.replays import replay
from hookonce.receiver.desk.rows import GOOD, REPLAY_BATCH, ReplayOutcome

_NONE, _TOO_MANY = "none", "too many"
_REFUSED = {
    _NONE: "No event is selected, so none was replayed. Tick the events first, or use “Replay matching…”.",
    _TOO_MANY: f"More than {REPLAY_BATCH} events are selected, so none was replayed. Use “Replay matching…” for more.",
}
_BAD = frozenset({ReplayOutcome.BODY_DROPPED, ReplayOutcome.ERASED, ReplayOutcome.UNREADABLE})


@admin.post("/events/replay")
def replay_chosen() -> Response:
    """Run the chosen events again, then show the same list."""
    chosen = request.form.getlist("event")
    if not chosen or len(chosen) > REPLAY_BATCH:
        return _back(_NONE if not chosen else _TOO_MANY)
    asked = read(replay, {"events": chosen})
    try:
        found = ask(replay, **asked)
    except Conflict as error:
        if error.code != "already_done":
            raise
        found = ask(replay, asked=asked["asked"].model_copy(update={"dry_run": True}))
    if not found.outcomes:
        abort(404, "None of the selected events is in the ledger; retention may have dropped them.")
    outcomes = Counter(each.fate for each in found.outcomes)
    return _back(",".join(f"{number} {fate}" for fate, number in sorted(outcomes.items())))


def _back(said: str) -> Response:
    """Show the list again, and above it what became of the selection."""
    view = parse_qsl(request.form.get("view", ""))
    return to_page("events", **{name: text for name, text in view if name[:1] != "_"} | {"said": said})


def said_of(said: str) -> tuple[str, str] | None:
    """Return what `replay_chosen` said as a notice; None for anything else."""
    if said in _REFUSED:
        return "warn", _REFUSED[said]
    counted: dict[str, int] = {}
    for part in said.split(","):
        number, _, fate = part.partition(" ")
        if number.isascii() and number.isdecimal() and fate in list(ReplayOutcome):
            counted[fate] = min(int(number[:6]), REPLAY_BATCH)
    if not counted:
        return None
    kind = "good" if counted.keys() <= GOOD else "bad" if counted.keys() & _BAD else "warn"
    told = ", ".join(f"{number} {fate.replace('_', ' ')}" for fate, number in counted.items())
    hint = " Open an event that is done to run it once more." if ReplayOutcome.DONE in counted else ""
    return kind, f"Of the selected events: {told}.{hint}"
