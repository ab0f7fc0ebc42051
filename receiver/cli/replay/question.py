"""The preview of a bulk replay, and the question before it."""

from collections.abc import Mapping, Sequence
from typing import Any

from hookonce.receiver.cli.output.printing import confirm, tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.desk.events import EventCounts
from hookonce.receiver.desk.registry import Answer

_KINDS = 8
"""Kinds of events named before the question; more are summed up."""


def is_agreed(plan: Answer, options: Mapping[str, Any], *, as_json: bool) -> bool:
    """Show what matches, and ask; return whether it is to be replayed, which it is not in a dry run.

    Raises: `click.Abort` for a no, and a usage error where nobody can answer.
    """
    counted = plan if isinstance(plan, EventCounts) else EventCounts(total=0, data=[])
    kinds, matching = [(row.type, row.status, row.count) for row in counted.data], counted.total
    chosen: int = min(matching, options["limit"] or matching)
    text = f"{matching} {'event matches' if matching == 1 else 'events match'}"
    if chosen < matching:
        text += f", the oldest {chosen} of them are chosen"
    if options["dry_run"]:
        _show(kinds, as_json=as_json)
        tell(f"{text}; nothing was replayed")
        return False
    tell(text)
    for kind, status, count in kinds[:_KINDS]:
        tell(f"  {count:>8}  {status:<8}  {clean(kind)}")
    if len(kinds) > _KINDS:
        rest = matching - sum(count for _, _, count in kinds[:_KINDS])
        tell(f"  {rest:>8}  of other kinds")
    if not options["yes"]:
        confirm(text, f"replay {chosen}")
    return True


def _show(kinds: Sequence[tuple[str, str, int]], *, as_json: bool) -> None:
    if not as_json:
        show(("type", "status", "events"), kinds)
        return
    for kind, status, count in kinds:
        print_json({"type": kind, "status": status, "events": count})
