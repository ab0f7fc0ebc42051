"""Which issue a failure is of: the same handler, the same classes of errors, raised at the same places.

A place is the innermost frame of the user's code: its file, its function, and the line as it is written. Its number is
left out, since it changes with each line above it, and so are messages, which quote ids.
"""

import hashlib
from collections.abc import Iterator, Sequence

from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.receiver.ledger.stats.issues import Issue
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback

_DIGITS = 12


def issue_of(handler: str, error: BaseException, traceback: Traceback | None, release: str) -> Issue:
    """Return the issue of a failure by its traceback; without one by the error's class, and where it was raised."""
    title = whereabouts(error)
    said = list(_places(traceback.errors)) if traceback is not None else [title]
    digest = hashlib.sha256("\n".join([handler, *said]).encode(errors="replace"))
    return Issue(digest.hexdigest()[:_DIGITS], title, release)


def _places(errors: Sequence[Raised]) -> Iterator[str]:
    """Yield the class of each error after what it came from, and the place where it was raised."""
    for raised in errors:
        yield raised.said.partition("\n")[0].partition(":")[0]
        frame = next((each for each in reversed(raised.frames) if each.is_users), None)
        if frame is not None:
            yield f"{frame.file} {frame.function} {''.join(frame.code[-1:]).strip()}"
