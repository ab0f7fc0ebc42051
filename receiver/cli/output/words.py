"""Numbers with their nouns: `1 failure`, `5 failures`."""

from collections.abc import Sequence

_NAMED = 20
"""Events named by their ids; more are counted."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number of something."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def counted_events(numbers: Sequence[int]) -> str:
    """Return how many events there are, and their ids if they are few."""
    said = counted(len(numbers), "event")
    return f"{said} ({', '.join(map(str, numbers))})" if 0 < len(numbers) <= _NAMED else said
