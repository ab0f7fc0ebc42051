"""Captured deliveries, read once for all the tests that go through them, and not before one does."""

from functools import cache
from pathlib import Path

from hookonce.providers.kit.conformance import cases

DELIVERIES = Path(__file__).parents[1] / "providers"


@cache
def captured_of(name):
    """The captured deliveries of one sender; none where there is no folder of this name."""
    return tuple(cases(DELIVERIES / name))


@cache
def captured():
    """All captured deliveries: what is above 200 modules and 600 files, a second of CPU."""
    folders = sorted(folder.name for folder in DELIVERIES.iterdir() if any(folder.glob("*.json")))
    return tuple(case for name in folders for case in captured_of(name))


def captured_as(name):
    """The one delivery that is called `sender/file`."""
    [case] = [case for case in captured_of(name.partition("/")[0]) if case.name == name]
    return case
