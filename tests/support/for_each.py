"""One test that goes over many things and names every offender.

A test per thing costs 5 ms of collecting and reporting in each worker; three rules over 800 files are three tests.
"""

import functools
import inspect

import pytest


def for_each(things, named=str, parts=None):
    """Decorate a test whose first parameter is a thing (its first parameters, the parts of a tuple): it checks all.

    Fixtures are made once for all things. A skip is an offence: it would leave out what comes after it.
    - `things` may be a function, called when the test runs: what takes long to read is not read while collecting.
    - `parts`: how many parts a thing has, where `things` is such a function and they are tuples.
    """
    known = None if callable(things) else all_of(things)
    count = parts or (len(known[0]) if known and isinstance(known[0], tuple) else 1)

    def decorate(test):
        parameters = list(inspect.signature(test).parameters.values())

        @functools.wraps(test)
        def over_all(**fixtures):
            offenders = []
            found = all_of(things()) if known is None else known
            for thing in found:
                try:
                    test(*(thing if isinstance(thing, tuple) else (thing,)), **fixtures)
                except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:  # noqa: BLE001  all are named
                    offenders.append((named(thing), error))
            if offenders:
                told = "\n".join(f"{name}: {type(error).__name__}: {error}" for name, error in offenders)
                raise AssertionError(f"{len(offenders)} of {len(found)}:\n{told}") from offenders[0][1]

        del over_all.__wrapped__
        over_all.__signature__ = inspect.Signature(parameters[count:])
        return over_all

    return decorate


def all_of(things):
    things = list(things)
    assert things, "nothing to check"
    return things
