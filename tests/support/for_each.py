"""One test that goes over many things and names every offender.

A test per thing costs 5 ms of collecting and reporting in each worker; three rules over 800 files are three tests.
"""

import functools
import inspect

import pytest


def for_each(things, named=str):
    """Decorate a test whose first parameter is a thing (its first parameters, the parts of a tuple): it checks all.

    Fixtures are made once for all things. A skip is an offence: it would leave out what comes after it.
    """
    things = list(things)
    assert things, "nothing to check"

    def decorate(test):
        parameters = list(inspect.signature(test).parameters.values())
        parts = len(things[0]) if isinstance(things[0], tuple) else 1

        @functools.wraps(test)
        def over_all(**fixtures):
            offenders = {}
            for thing in things:
                try:
                    test(*(thing if isinstance(thing, tuple) else (thing,)), **fixtures)
                except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:  # noqa: BLE001  all are named
                    offenders[named(thing)] = error
            if offenders:
                told = "\n".join(
                    f"{name}: {type(error).__name__}: {error}" for name, error in offenders.items()
                )
                raise AssertionError(f"{len(offenders)} of {len(things)}:\n{told}") from next(
                    iter(offenders.values())
                )

        del over_all.__wrapped__
        over_all.__signature__ = inspect.Signature(parameters[parts:])
        return over_all

    return decorate
