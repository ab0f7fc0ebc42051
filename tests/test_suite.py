"""The suite's own promises: what is tried again, what a wait may hide, which lane is whose, what may be skipped."""

import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import lanes, skips, waiting
from tests.support.for_each import for_each
from tests.support.waiting import DeadlineMissed, until

TESTS = Path(__file__).parent
SHORT = 0.05  # seconds
PLUGINS = """
from tests.support.second_try import SecondTry
from tests.support.skips import Skips

def pytest_configure(config):
    config.pluginmanager.register(SecondTry())
    config.pluginmanager.register(Skips())
"""
FAILS_OF = """
import pytest
from pathlib import Path
from tests.support.waiting import DeadlineMissed

@pytest.mark.parametrize("number", range({count}))
def test_it(number, tmp_path_factory):
    tried = Path({tried!r}, str(number))
    if tried.exists():
        return
    tried.touch()
    {body}
"""


@pytest.fixture
def run(tmp_path):
    """Run a file of tests under the suite's plugins; its last lines, and its exit code."""

    def run(source, *options, **environ):
        (tmp_path / "conftest.py").write_text(PLUGINS)
        (tmp_path / "test_it.py").write_text(source)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-p",
                "xdist",
                "-c",
                "/dev/null",
                *options,
                "test_it.py",
            ],
            cwd=tmp_path,
            env={
                "PYTHONPATH": str(TESTS.parent),
                "PATH": "/usr/bin:/bin",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            }
            | environ,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout, done.returncode

    return run


def failing_once(tmp_path, body, count=1):
    tried = tmp_path / "tried"
    tried.mkdir()
    return FAILS_OF.format(tried=str(tried), body=body, count=count)


@pytest.mark.parametrize(
    ("body", "is_tried_again"),
    [
        ('raise DeadlineMissed("it")', True),
        ("assert [1, 1] == [1]", False),
        ('raise RuntimeError("DeadlineMissed: it")', False),
        ('raise AssertionError("it") from DeadlineMissed("it")', False),
        ('try:\n        assert 1 == 2\n    finally:\n        raise DeadlineMissed("it")', False),
        ('try:\n        raise DeadlineMissed("a")\n    finally:\n        raise DeadlineMissed("b")', True),
    ],
)
def test_only_a_missed_deadline_is_tried_again(run, tmp_path, body, is_tried_again):
    said, code = run(failing_once(tmp_path, body))

    assert (code == 0) is is_tried_again
    assert ("1 passed, 1 rerun" in said) is is_tried_again
    assert ("RERUN test_it.py::test_it[0] (call)" in said) is is_tried_again


def test_missed_deadline_hides_no_assertion_of_a_teardown(run, tmp_path):
    teardown = "\n@pytest.fixture(autouse=True)\ndef over():\n    yield\n    raise AssertionError('lost')\n"
    said, code = run(failing_once(tmp_path, 'raise DeadlineMissed("it")') + teardown)

    assert (code, "rerun" in said) == (1, False)


def test_missed_deadline_hides_no_assertion_of_a_fixture_of_the_module(run, tmp_path):
    fixture = "\n@pytest.fixture(scope='module', autouse=True)\n"
    ends_badly = f"{fixture}def over():\n    yield\n    raise AssertionError('lost')\n"
    after = "\ndef test_after():\n    pass\n"
    said, code = run(failing_once(tmp_path, 'raise DeadlineMissed("it")') + ends_badly + after)

    assert code == 1
    assert "AssertionError: lost" in said
    assert "INTERNALERROR" not in said


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_run_with_more_than_three_second_tries_is_red(run, tmp_path, processes):
    said, code = run(failing_once(tmp_path, 'raise DeadlineMissed("it")', count=4), *processes)

    assert "4 passed, 4 rerun" in said
    assert "4 reruns, 3 at most: the run is red" in said
    assert code == 1


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_three_second_tries_are_told_and_pass(run, tmp_path, processes):
    said, code = run(failing_once(tmp_path, 'raise DeadlineMissed("it")', count=3), *processes)

    assert (said.count("RERUN test_it.py"), code) == (3, 0)


def test_skip_that_is_not_allowed_fails_in_ci_only(run):
    skipped = "import pytest\n\n@pytest.mark.skip('no such thing')\ndef test_it():\n    pass\n"
    source = f"{skipped}\ndef test_other():\n    pass\n"

    said, here = run(source)
    told, in_ci = run(source, CI="true")

    assert "SKIPPED 1: no such thing" in said
    assert "does not allow it in CI" in told
    assert (here, in_ci) == (0, 1)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["a", "a"], ["a"]),
        ([("a", "dead")], [("a", "done")]),
        ([("a", "done", 2)], [("a", "done", 1)]),
        (3, 2),
        ({"done": 2, "dead": 1}, {"done": 3}),
        ({"done": 4}, {"done": 3}),
        ({"a", "b"}, {"a"}),
        ("ignored", "done"),
        (["a", "a"], ["a", "b"]),
        ([("a", "credit"), ("a", "credit")], [("a", "credit"), ("b", "credit")]),
        (["done", "done"], ["done", "dead"]),
        ({"a": 1, "c": 1}, {"a": 1, "b": 1}),
    ],
)
def test_wait_fails_at_once_where_more_or_another_end_is_seen(found, expected):
    with pytest.raises(AssertionError, match="is past"):
        until(lambda: found, expected, seconds=60)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], ["a"]),
        (1, 2),
        ("running", "done"),
        ({"running": 1, "done": 1}, {"done": 2}),
        (["waiting", "waiting"], ["waiting", "done"]),
        ([("a", 1), ("a", 1)], [("a", 1), ("a", 2)]),
        ({("a", 0)}, {("a", 1)}),
        (["slave,disconnected"], ["slave"]),
        (["a"], []),
        (3, 0),
        (None, True),
    ],
)
def test_wait_for_what_may_yet_come_misses_its_deadline(found, expected):
    with pytest.raises(DeadlineMissed):
        until(lambda: found, expected, seconds=SHORT)


def test_wait_ends_when_the_process_does():
    with (
        subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process,
        pytest.raises(AssertionError, match="3"),
    ):
        until(lambda: False, process=process)


def test_loop_over_things_names_every_offender():
    @for_each([("a", 1), ("b", 2), ("c", 3), ("d", 4)])
    def is_odd(name, number, missing):
        if name == "d":
            pytest.skip("no d")
        assert number % 2, missing

    with pytest.raises(AssertionError) as told:
        is_odd(missing="even")

    assert "2 of 4:" in str(told.value)
    assert "'b', 2" in str(told.value)
    assert "'d', 4" in str(told.value)


class Node:
    """A worker of pytest-xdist as its scheduler knows it; it holds its last test back until it knows the next one."""

    def __init__(self, name):
        self.gateway = SimpleNamespace(id=name)
        self.shutting_down = False
        self.given = []

    def send_runtest_some(self, indices):
        self.given += indices

    def shutdown(self):
        self.shutting_down = True

    @property
    def next(self):
        return self.given[0] if self.given[1:] or (self.given and self.shutting_down) else None


@pytest.mark.parametrize("seed", range(20))
def test_files_that_run_alone_come_last_and_by_themselves(pytestconfig, seed):
    files = ["cli/test_a.py", "e2e/test_a.py", "e2e/test_b.py", *(f"jobs/test_{n}.py" for n in range(9))]
    alone = [f"tests/{each}" for each in lanes.ALONE_PLACES[:2]]
    tests = [f"{file}::test_{n}" for file in (*(f"tests/{each}" for each in files), *alone) for n in range(3)]
    config = SimpleNamespace(option=SimpleNamespace(**vars(pytestconfig.option) | {"tx": ["3*popen"]}))
    config.getvalue = lambda name: getattr(config.option, name)
    scheduler = lanes.LaneScheduling(config)
    nodes, ran, chance = [Node(f"gw{n}") for n in range(3)], {}, random.Random(seed)  # noqa: S311  no secret
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()

    while ready := [node for node in nodes if node.next is not None]:
        node = chance.choice(ready)
        if tests[node.next].startswith(tuple(alone)):
            assert [other for other in nodes if other is not node and other.given] == []
        index = node.given.pop(0)
        ran.setdefault(tests[index], []).append(node)
        scheduler.mark_test_complete(node, index)

    assert {name: len(by) for name, by in ran.items()} == dict.fromkeys(tests, 1)
    assert len({by[0] for name, by in ran.items() if "/e2e/" in name}) == 1


def test_places_of_lanes_exist():
    places = [*lanes.PURE_PLACES, *lanes.ALONE_PLACES, *lanes.LONG_PLACES, *lanes.FIRST_PLACES]

    assert [each for each in places if not (TESTS / each).exists()] == []


def test_allowed_skips_are_reasons_that_a_test_gives():
    sources = [path.read_text() for path in TESTS.rglob("*.py") if path.name != "skips.py"]

    assert [reason for reason in skips.ALLOWED if not any(reason in source for source in sources)] == []


def test_deadlines_are_waited_for_in_one_way():
    """A loop of a test's own would hide what goes past it, and be no DeadlineMissed."""
    own = re.compile(r"assert time\.monotonic\(\) <|while .*time\.monotonic\(\) <")
    offenders = [
        f"{path.relative_to(TESTS)}:{number}"
        for path in TESTS.rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if own.search(line) and path.name not in {"test_suite.py", "waiting.py"}
    ]

    assert offenders == []
    assert waiting.ENOUGH >= 10
