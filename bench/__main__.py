"""`python -m bench [--quick] [--only NAME …] [--json FILE] [--publish]` and `python -m bench growth`."""

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from bench.load.sending import BadAnswers
from bench.report import results
from bench.run import Run
from bench.scenarios import SCENARIOS, Scenario, chosen
from bench.scenarios.growth import STAGES, chosen_stages, growth
from bench.servers import other_work, stack

LIMIT, QUICK_LIMIT, GROWTH_LIMIT = 600, 180, 1200  # seconds for everything
_CLOSING, _QUICK_CLOSING = 8, 3  # seconds of these for stopping the servers
GROWTH_ROWS = 5_000_000


class _Overtime(BaseException):
    """The time for everything is over: what has been measured is reported, everything is stopped."""


def main() -> int:
    """Measure, print the table, keep the results; 1 if a scenario failed or time ran out."""
    options = _options()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _overtime)
    limit = GROWTH_LIMIT if options.what == "growth" else QUICK_LIMIT if options.quick else LIMIT
    limit = options.seconds or limit
    began = time.monotonic()
    limit -= _QUICK_CLOSING if options.quick else _CLOSING
    signal.alarm(limit)
    with stack.running(options.data) as servers:
        run = Run(servers, options.quick, began + limit)
        about = results.about(servers, quick=options.quick)
        with other_work.watched() as others:
            try:
                failed = _grow(run, options) if options.what == "growth" else _measure(run, options)
            except _Overtime:
                print("\nout of time; what follows was measured until then", flush=True)
                failed = True
            signal.alarm(0)
        found = results.result(run.figures, about | {"others": others, "failed": failed})
    print(f"\n{results.table(found)}\n\n{time.monotonic() - began:.0f} s in all")
    if options.json:
        results.save(found, options.json)
    if options.publish:
        try:
            results.publish(found, "growth" if options.what == "growth" else "latest")
        except results.NotPublished as error:
            print(error, file=sys.stderr)
            failed = True
    return int(failed)


def _measure(run: Run, options: argparse.Namespace) -> bool:
    """Give each scenario its share of the time that is left: in a slow hour all have fewer rounds, none has none.

    In a quick run each has one round.
    """
    failed = False
    scenarios = chosen(options.only)
    needs = [each.seconds for each in scenarios]
    for number, scenario in enumerate(scenarios):
        now = time.monotonic()
        share = (run.until - now) * needs[number] / max(sum(needs[number:]), 1)
        if not run.quick:
            run.rounds_until = now + min(share, needs[number] * 4 / 3)
        failed = not _succeeds(scenario, run) or failed
    return failed


def _succeeds(scenario: Scenario, run: Run) -> bool:
    print(f"{scenario.name}: {scenario.what} …", flush=True)
    began = time.monotonic()
    try:
        scenario.measure(run)
    except BadAnswers as error:
        print(f"{scenario.name}: FAILED, {error}", flush=True)
        print("\n".join(stack.tail(run.stack.directory)), file=sys.stderr)
        return False
    print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return True


def _grow(run: Run, options: argparse.Namespace) -> bool:
    try:
        growth(run, options.rows, chosen_stages(options.only))
    except BadAnswers as error:
        print(f"growth: FAILED, {error}", flush=True)
        return True
    return False


def _options() -> argparse.Namespace:
    names, stages = ", ".join(scenario.name for scenario in SCENARIOS), ", ".join(STAGES)
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["all", "growth"], default="all")
    parser.add_argument("--quick", action="store_true", help="a look in three minutes, not a claim")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help=f"some of: {names}; of growth: {stages}"
    )
    parser.add_argument("--seconds", type=int, help=f"for everything; {LIMIT}, --quick {QUICK_LIMIT}")
    parser.add_argument("--rows", type=int, default=GROWTH_ROWS, help="rows that `growth` loads")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the servers' data there, and use it again"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--publish", action="store_true", help="bring bench/results and docs/ up to date")
    options = parser.parse_args()
    if options.publish and (options.only or options.quick):
        parser.error("what is published is a whole run: leave --only and --quick out")
    try:
        if options.what == "growth":
            chosen_stages(options.only)
        else:
            chosen(options.only)
    except LookupError as error:
        parser.error(str(error))
    return options


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    signal.alarm(0)  # nothing may interrupt the stopping of the servers
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _overtime(*_: Any) -> NoReturn:  # noqa: ANN401  a signal handler
    raise _Overtime


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
