"""Which tests are run against a mutant: those that execute its line, as many as there is time for, the likeliest first.

Likely is a test that executes the lines of few mutants, and that is short. Of a test with many cases one comes before
the second of any other. The tests of a file stay together, for what they share is made once for all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta

from tests.mutants.reach import Test

OVERHEAD = 0.02
"""Seconds that each test takes besides."""


def chosen(tests: Iterable[Test], breadth: Mapping[str, int], budget: timedelta) -> list[Test]:
    """Choose from the tests that execute a line; `breadth` is how many lines each of them executes.

    A test is left out that failed without any mistake, or that is to run alone: it looks at how long things take.
    """
    fit = [test for test in tests if test.outcome == "passed" and not test.is_alone]
    cost = {test.name: (test.seconds + OVERHEAD) * breadth[test.name] for test in fit}
    fit.sort(key=lambda test: (cost[test.name], test.name))
    cases: Counter[str] = Counter()
    rank = {}
    for test in fit:
        function = test.name.partition("[")[0]
        rank[test.name] = cases[function]
        cases[function] += 1
    left, found = budget.total_seconds(), []
    for test in sorted(fit, key=lambda test: rank[test.name]):  # stable: within a rank by cost
        if test.seconds + OVERHEAD <= left:
            left -= test.seconds + OVERHEAD
            found.append(test)
    first: dict[str, int] = {}
    for number, test in enumerate(found):
        first.setdefault(_file(test), number)
    return sorted(found, key=lambda test: first[_file(test)])


def _file(test: Test) -> str:
    return test.name.partition("::")[0]
