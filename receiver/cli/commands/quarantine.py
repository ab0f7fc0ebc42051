"""`hookonce rejected quarantine` and `hookonce reverify`: deliveries that were kept whole, verified again."""

from collections.abc import Mapping
from typing import Any

from hookonce.receiver.cli.action_command import listing, planned
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.rejected import ReverifyResponse, list_quarantine, reverify_source

quarantine = listing(
    list_quarantine,
    "source reason count bytes oldest newest",
    "nothing is in quarantine; `quarantine = true` in a source's table keeps what it rejects",
    name="quarantine",
    about="Say what is in quarantine, by source and reason. `hookonce reverify` checks it again.",
)


def _show(done: ReverifyResponse) -> None:
    taken = "would be taken in" if done.dry_run else "taken in"
    counts = "" if done.dry_run else f" ({done.accepted} events new, {done.duplicates} known)"
    tell(f"{done.looked_at} deliveries looked at, {done.genuine} {taken}{counts}")
    if done.empty:
        tell(f"{done.empty} are genuine and hold no event")
    for reason, count in sorted(done.refused.items()):
        tell(f"{count} refused again: {reason}")
    if done.unopened:
        tell(f"{done.unopened} could not be opened: their key is not configured here, or they were changed")


def _then(_here: Asks, models: Mapping[str, Any], done: ReverifyResponse) -> object:
    if not done.keeps and not done.looked_at:
        source = models["which"].source
        tell(f"source '{source}' keeps none of what it refuses; `quarantine = true` in its table would")
    return done.unopened


reverify = planned(
    reverify_source,
    _show,
    then=_then,
    name="reverify",
    about="""Check what SOURCE rejected and kept in quarantine again, and take in what is genuine.

    Each delivery is checked as of its arrival, with the secrets of this environment. What fails stays in quarantine.
    Exit 3 if a delivery could not be opened.
    """,
)
