"""Cuts a nested batch into deliveries of one: `cut(body, ("entry", None, ("changes", "messaging"), None))`.

For `split_events`: what stands around an event (the account, the channel) goes with every piece.
"""

from collections.abc import Iterator
from typing import Any

Cut = str | tuple[str, ...] | None
"""A key to go into, several of which each makes pieces of its own, or None for a list to be taken apart."""


def cut(data: Any, steps: tuple[Cut, ...]) -> Iterator[Any]:  # noqa: ANN401  any JSON
    """Return every piece of `data`, in order: a copy in which each list on the way has one element.

    A piece holds one of several alternative keys and not the others. What has none of the keys, or is not a list
    where one should be, is not cut further and is a piece itself; an empty list has none.
    """
    if not steps:
        yield data
        return
    step, rest = steps[0], steps[1:]
    names = (step,) if isinstance(step, str) else step or ()
    there = [name for name in names if isinstance(data, dict) and name in data]
    if step is None and isinstance(data, list):
        for item in data:
            yield from ([one] for one in cut(item, rest))
    elif there:
        around = {name: value for name, value in data.items() if name not in there}
        for name in there:
            yield from ({**around, name: one} for one in cut(data[name], rest))
    else:
        yield data
