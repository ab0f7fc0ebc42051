"""The collector of cycles, in processes that live long and load much before they begin."""

import gc

THRESHOLDS = (50_000, 20, 100)
"""For code that is all ours, and leaves hardly a cycle."""
FOR_HANDLERS = (10_000, 10, 10)
"""For a process that others' code runs in."""


def calm_collector(thresholds: tuple[int, int, int] = THRESHOLDS) -> None:
    """Keep the collector of cycles from going through what lives as long as the process, and from doing it often.

    Unlike the count of references, which frees nearly all that a request or a run leaves, it walks over objects that
    are in use. By default it does so after every 700 new ones: a parsed megabyte of `[[],[],…]` is walked over dozens
    of times while it grows, which is nine tenths of its cost, and anybody may send one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds)
