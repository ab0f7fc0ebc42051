"""What a handler of batches is given and returned, where it is alone and where it is not."""

from collections.abc import Callable, Sequence
from typing import Any

from hookonce.jobs.attempts import endings
from hookonce.jobs.event import ReceivedEvent

Call = Callable[[Any, Any], object]


def alone(call: Call, event: ReceivedEvent, given: object) -> object:
    """Call a handler of batches with a single event; return that one's result."""
    (result,) = results_of(call([event], given), 1)
    return result


def results_of(returned: object, count: int) -> Sequence[Any]:
    """Return the result of each run: its own from a list of so many, or what was returned for all of them.

    Raises: TypeError for what is neither None nor JSON.
    """
    if isinstance(returned, list | tuple) and len(returned) == count:
        return [endings.storable(each) for each in returned]
    return [endings.storable(returned)] * count
