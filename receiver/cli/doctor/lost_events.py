"""Findings of `hookonce doctor` about the ledger: events that are lost, and runs that nobody claims."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

from hookonce.receiver.cli.connections import UNREACHABLE, ledger
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.maintenance import lost_events as lost

TIME_LIMIT = timedelta(seconds=1)
"""How long it looks, newest first; what is older a sweep looks through in the course of a day."""

NAMED = 20
UNCLAIMED = (
    "{} runs are under a claim that there is not, so no worker takes them (newest events: {}); the sweep gives them one"
    " again: have `hookonce sweep` or a worker run, and please report it"
)


def lost_events(settings: Settings) -> Iterator[Finding]:
    """Name lost events, and runs whose claim is gone; nothing while the database is away, which another check tells."""
    with suppress(*UNREACHABLE), ledger(settings) as connection:
        found = lost.found_so_far(connection, TIME_LIMIT)
        if found:
            yield Finding("fail", "events", lost.words(found))
        else:
            yield Finding("ok", "events", "each has an open run or an outcome")
        if unclaimed := lost.unclaimed(connection, TIME_LIMIT):
            yield Finding(
                "fail", "claims", UNCLAIMED.format(len(unclaimed), " ".join(map(str, unclaimed[:NAMED])))
            )
