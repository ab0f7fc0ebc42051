"""Rates stand beside their CPU, and a p99 is not the generator's own; scenarios of any run go one after the other."""

import contextlib
import signal
import sys
from types import SimpleNamespace

import pytest

from bench import __main__ as program
from bench.load.generator import p99
from bench.report import results
from bench.report.figures import EVERY
from bench.run import Run
from bench.scenarios import Scenario

SERVERS_ALONE = {
    *("pgbench_single_rate", "pgbench_batch_rate", "redis_single_rate", "redis_batch_rate", "window_rate"),
    *("growth_pruned_by_sweep", "growth_pruned_by_command"),
}
"""Rates that no receiver and no worker has a part in."""


def test_every_rate_names_the_cpu_that_stands_beside_it():
    names = {figure.name for figure in EVERY}

    assert {figure.name for figure in EVERY if figure.unit == "/s" and not figure.cpu} == SERVERS_ALONE
    assert {figure.cpu for figure in EVERY if figure.cpu} <= names


def test_table_shows_cpu_of_a_rate_beside_it():
    figures = {
        "empty_rate": [5000.0],
        "new_rate": [3000.0],
        "cpu_empty_us": [300.0],
        "cpu_receiver_us": [270.0],
    }

    table = results.table(results.result(figures, {}))

    assert "| new events | 3,000 /s | 3,000 … 3,000 | 0.9 |" in table
    assert "| empty Flask route | 5,000 /s | 5,000 … 5,000 | 1 |" in table


@pytest.mark.parametrize(
    ("latency", "lag", "said"),
    [
        (0.080, 0.0005, 0.080),  # seconds
        (0.080, 0.0075, 0.080),
        (0.080, 0.0085, None),
        (0.002, 0.0009, 0.002),  # epoll waits whole milliseconds
        (0.002, 0.0011, None),
    ],
)
def test_p99_is_not_given_where_the_generator_itself_was_late(latency, lag, said):
    latencies, lags = ([each] * 3 + [0.0] * 97 for each in (latency, lag))

    assert p99(latencies, lags) == said


def test_figure_that_could_not_be_measured_is_none():
    run = Run(None, quick=False, until=0)

    run.note(answer_p50_ms=7.5, answer_p99_ms=None)

    assert run.figures == {"answer_p50_ms": [7.5]}


@pytest.fixture(autouse=True)
def signals():
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)}
    yield
    signal.alarm(0)
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def bench(monkeypatch):
    """Run the program on fake scenarios, without servers, beside other work; what they did, in order."""
    done = []

    def scenario(name):
        def measure(run):
            done.extend([f"{name} begins", f"{name} ends, quick: {run.quick}"])

        return Scenario(name, "a fake", measure, 1)

    def run(*options, core=0.0):
        others = {"process": "make (4711)", "core": core, "steal": 0.0}
        monkeypatch.setattr(program.other_work, "watched", lambda: contextlib.nullcontext(others))
        monkeypatch.setattr(sys, "argv", ["bench", *options])
        return program.main(), done

    monkeypatch.setattr(program, "chosen", lambda _: [scenario(name) for name in ("first", "second")])
    monkeypatch.setattr(program.stack, "running", lambda *_: contextlib.nullcontext(SimpleNamespace()))
    monkeypatch.setattr(program.results, "about", lambda *_, **__: {})
    return run


def test_quick_run_measures_one_thing_after_the_other(bench):
    failed, done = bench("--quick")

    assert failed == 0
    assert done == ["first begins", "first ends, quick: True", "second begins", "second ends, quick: True"]


def test_run_beside_another_process_ends_unpublished(bench, capsys):
    failed, _ = bench("--publish", core=0.31)

    assert failed == 1
    assert "not published: process make (4711) took 31.0% of a core" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--quick"], ["--only", "peaks"], ["growth", "--only", "load"]])
def test_part_of_a_run_is_not_published(bench, options, capsys):
    with pytest.raises(SystemExit):
        bench("--publish", *options)

    assert "what is published is a whole run" in capsys.readouterr().err
