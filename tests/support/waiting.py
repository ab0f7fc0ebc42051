"""A test waits for a condition with a deadline; a condition that went past what is awaited fails at once.

`until(look, expected)` looks again and again. A look that shows more than is expected (a list with an entry too many,
a higher count, a run that ended otherwise) is a failed assertion at first sight, since waiting would only hide it. A
deadline that passes is a `DeadlineMissed`; that alone is tried a second time (tests/support/second_try.py).
"""

import threading
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta

ENOUGH = 20  # seconds: on a machine that is busy with other things too
PATIENT = {"lock": timedelta(seconds=ENOUGH), "statement": timedelta(seconds=ENOUGH)}
"""For connections that race: what holds a lock may have no turn for a second, in which a receiver's would give up."""
BREATH = 0.01  # seconds between two looks
SHARE = 6
"""So many times as long as a look took is the pause after it: looking must not take the time of what is looked at."""
LONGEST_BREATH = 0.1  # seconds
ENDS = frozenset({"done", "dead", "discarded", "ignored", "held"})
"""Statuses that a run or an event does not leave by itself: another one than expected is another end."""
PASSING = frozenset({"received", "queued", "waiting", "running"})
"""Words that something else may follow; what else is expected, as the id of an event, stays what it is."""


class DeadlineMissed(Exception):  # noqa: N818  the name says what happened; it is no error of the product
    """A condition was not met in time; nothing that was seen contradicts it."""


def until(look, expected=None, *, seconds=ENOUGH, what=None, away=(), process=None, falling=False):
    """Look until it shows what is expected, or anything true if nothing is; return what was seen last.

    - `away`: exceptions that mean "not yet", as from a server that is still starting.
    - `process`: a process that must not end meanwhile.
    - `falling`: the count or the list is known to come down to what is expected; so it is where 0 or nothing is.
    """
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        found, is_met = looked(look, expected, away)
        if is_met:
            return found
        name = what or getattr(look, "__name__", "it")
        assert falling or not went_past(found, expected), f"{name}: {found!r} is past {expected!r}"
        assert process is None or process.poll() is None, f"{name}: the process ended ({process.returncode})"
        now = time.monotonic()
        if now > deadline:
            raise DeadlineMissed(f"{name}: {found!r} after {seconds} s, not {expected!r}")
        time.sleep(min(max(BREATH, SHARE * (now - began)), LONGEST_BREATH))


def in_one_of_three(measure, is_good):
    """Measure until it is good: a hiccup of the machine may spoil two rounds, and a mistake spoils all."""
    rounds = []
    while not any(map(is_good, rounds)):
        assert len(rounds) < 3, rounds
        rounds.append(measure())


def at_once(*calls):
    """Make each call in a thread of its own, and return when all have ended."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def looked(look, expected, away):
    try:
        found = look()
    except away as absent:
        return absent, False
    return found, bool(found) if expected is None else found == expected


def went_past(found, expected):
    """Tell whether what was found can't become what is expected by waiting on.

    Where 0 or an empty list is expected, what is there may go away; of other counts and lists nothing does.
    """
    if isinstance(expected, bool) or not expected:
        return False
    for kind, is_past in BY_KIND:
        if isinstance(expected, kind) and isinstance(found, kind):
            return is_past(found, expected)
    return False


def ended_otherwise(found, expected):
    return found != expected and {found, expected} <= ENDS


def has_a_stranger_or_went_past(found, expected):
    strangers = [found[each] for each in found.keys() - expected.keys() if stays(each)]
    return any(strangers) or any(
        went_past(found[each], expected[each]) for each in found.keys() & expected.keys()
    )


def is_longer_or_past_in_part(found, expected):
    if len(found) > len(expected) or (len(found) == len(expected) and any(map(went_past, found, expected))):
        return True
    return any(found.count(each) > expected.count(each) for each in expected if stays(each))


def stays(value):
    """Tell whether something can't become something else: text that is no passing status, or a tuple of such."""
    if isinstance(value, tuple):
        return all(map(stays, value))
    return isinstance(value, str) and value not in PASSING


BY_KIND = (
    (int | float, lambda found, expected: found > expected),
    (str, ended_otherwise),
    (bytes, lambda *_: False),
    (Mapping, has_a_stranger_or_went_past),
    (AbstractSet, lambda found, expected: len(found) > len(expected)),
    (Sequence, is_longer_or_past_in_part),
)
