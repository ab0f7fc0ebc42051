"""`python -m tests.mutants [--tree DIR] [--only NAME …] [--parts FOLDER …] [--jobs N] [--slow N] [--again] [--record]`.

Says what the tests of a checkout make of each mutant, and fails if one survives that the suite of before has caught.
Stopped at any moment, the next call goes on behind the last mutant that was tried.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants import copies, reach, record
from tests.mutants.choice import chosen
from tests.mutants.mutant import ROOT, Mutant, mutants
from tests.mutants.reach import Probed, Reach
from tests.mutants.record import Outcomes
from tests.mutants.site import site_of
from tests.mutants.trial import TESTS_TIME, Outcome, Trial, Verdict


def main() -> int:
    """Try the mutants that were not tried yet; 1 if one of them is caught no more."""
    options = _options()
    tree = Path(options.tree).resolve()
    wanted = [each for each in mutants() if not options.only or each.name in options.only]
    outcomes = Outcomes(copies.key_of(tree))
    with tempfile.TemporaryDirectory(prefix="hookonce-mutants-") as folder:
        work = Work(tree, Path(folder).resolve(), outcomes, options.slow)
        left = [each for each in wanted if options.again or outcomes.of(each) is None]
        if left:
            work.reach(mutants(), options.parts)
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work.attempt, left))
    found = {each.name: outcome for each in wanted if (outcome := outcomes.of(each)) is not None}
    if options.record:
        record.write_recorded(_commit(tree), found)
    return _report(found, record.recorded() if record.RECORDED.exists() else {})


class Work:
    """Tries the mutants on one tree, in copies in a folder."""

    def __init__(self, tree: Path, folder: Path, outcomes: Outcomes, slow: float = 1) -> None:
        self._tree = tree
        self._folder = folder
        self._outcomes = outcomes
        self._slow = slow
        self._lock = threading.Lock()
        self._reach = Reach.load(outcomes.reach)
        self._base: Path | None = None

    def reach(self, planted: list[Mutant], only: list[str]) -> None:
        """Find out which tests execute the lines of these mutants, as far as that is not known.

        `only` these parts of the suite, if some are named.
        """
        sites = {site_of(self._tree, mutant) for mutant in planted}
        parts = reach.parts(copies.files_of(self._tree))
        asked = only or list(parts)
        left = {part: unknown for part in asked if (unknown := self._reach.unknown(part, sites))}
        if not left:
            return
        began = time.monotonic()
        say(f"running the whole suite once, with probes at {len(sites)} lines …")
        probed = Probed(self._copy(), self._folder / "probed", sites)
        for part, unknown in left.items():
            tests, found = probed.run(parts[part])
            if not tests:
                raise RuntimeError(
                    f"none of the tests in {part} was run; see if `make test` works in {self._tree}"
                )
            self._reach.add(part, unknown, tests, found)
            self._reach.save(self._outcomes.reach)
            failed = sum(test.outcome == "failed" for test in tests)
            say(
                f"{(time.monotonic() - began) / 60:5.1f} min  {part}: {len(tests)} tests, {failed} of them failed"
            )
        probed.remove()

    def attempt(self, mutant: Mutant) -> None:
        """Try one mutant, and keep and say what came of it."""
        tests = self._reach.of(site_of(self._tree, mutant))
        some = chosen(tests, self._reach.breadth(), TESTS_TIME)
        outcome = Trial(self._copy(), self._folder / mutant.name, mutant, self._slow).run(some, len(tests))
        self._outcomes.add(mutant, outcome)
        say(_line(mutant.name, outcome))

    def _copy(self) -> Path:
        with self._lock:
            if self._base is None:
                self._base = copies.copy_of(self._tree, self._folder / "base")
            return self._base


def _line(name: str, outcome: Outcome) -> str:
    how = f"by {outcome.by}" if outcome.by else f"{outcome.tests} of {outcome.of} tests that execute its line"
    return f"{outcome.verdict:<11}  {outcome.seconds:5.1f} s  {name}: {how}"


def _report(found: dict[str, Outcome], before: dict[str, dict[str, str]]) -> int:
    """Print what is not caught, and the sum; return the exit status."""
    others = {name: each for name, each in found.items() if each.verdict != Verdict.CAUGHT}
    lost = [name for name in others if before.get(name, {}).get("verdict") == Verdict.CAUGHT]
    say("")
    for name, outcome in others.items():
        was = f"  -- was caught by {before[name]['by']}" if name in lost else ""
        say(_line(name, outcome) + was)
    caught = len(found) - len(others)
    late = sum(each.verdict == Verdict.OUT_OF_TIME for each in others.values())
    say(f"{caught} caught, {len(others) - late} survived" + (f", {late} out of time" if late else ""))
    if lost:
        say(f"caught no more: {', '.join(lost)}")
    return int(bool(lost))


def _commit(tree: Path) -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--tree", default=ROOT, metavar="DIR", help="a checkout with its own .venv")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these mutants")
    parser.add_argument(
        "--parts", nargs="+", default=[], metavar="FOLDER", help="only these of tests/, for a look at them"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument(
        "--slow", type=float, default=1, metavar="N", help="allow N times the time: the machine is busy"
    )
    parser.add_argument("--again", action="store_true", help="try also those that were tried")
    parser.add_argument("--record", action="store_true", help="write the verdicts into verdicts.json")
    return parser.parse_args()


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
