import logging
import os
import selectors
import signal
import subprocess
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from hookonce.receiver.processes.supervisor import SAME_CRASHES, Child, RestartDelays, Supervisor

ROOT = Path(__file__).parents[2]
HOUR = timedelta(hours=1)
STUBBORN = "trap 'echo refuses' TERM; echo ready; while :; do sleep 1000 & wait; done"


class ManualTime(selectors.DefaultSelector):
    """A selector and a clock of its own: where others would wait for a time, it sets the clock to it."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.timeouts = []

    def __call__(self):
        return self.now

    def select(self, timeout=None):
        self.timeouts.append(timeout)
        if timeout is None:
            return super().select(10)
        events = super().select(0)
        if not events:
            self.now += timeout
        return events


def sh(script, name="child", **options):
    return Child(name, ["sh", "-c", script], **options)


def supervise(*children, react=None, time=None, grace=HOUR, **timing):
    """Run until a reaction to a line stops it; return the status and the lines."""
    lines = []

    def on_line(name, line):
        lines.append((name, line))
        if line in (react or {}):
            react[line]()

    timing |= {"clock": time, "selector": time} if time else {}
    supervisor = Supervisor(children, on_line=on_line, grace=grace, **timing)
    react = {line: supervisor.stop if action == "stop" else action for line, action in (react or {}).items()}
    return supervisor.run(), lines


def send(signum):
    return lambda: os.kill(os.getpid(), signum)


@pytest.mark.parametrize(
    ("runs", "pauses"),
    [
        ([0, 0, 0, 0, 0, 0, 0], [1, 2, 4, 8, 16, 30, 30]),
        ([59, 59], [1, 2]),
        ([60, 0, 0], [0, 1, 2]),
        ([0, 0, 0, 60, 0], [1, 2, 4, 0, 1]),
    ],
)
def test_pauses_grow_until_a_healthy_run(runs, pauses):
    pausing = RestartDelays()

    assert [pausing.after(timedelta(seconds=ran)) for ran in runs] == [
        timedelta(seconds=each) for each in pauses
    ]


def test_dead_child_comes_back_after_growing_pauses(caplog):
    time = ManualTime()
    starts = []

    def count():
        starts.append(time.now)
        if len(starts) == 7:
            send(signal.SIGTERM)()

    supervise(sh("echo started; exit 3"), time=time, react={"started": count})

    assert starts == [0, 1, 3, 7, 15, 31, 61]
    assert caplog.messages[:2] == [
        "child ended (exit status 3); starts again in 1 s",
        "child ended (exit status 3); starts again in 2 s",
    ]


def test_child_comes_back_at_once_after_a_healthy_run():
    time = ManualTime()
    starts = []

    def age():
        starts.append(time.now)
        time.now += 60
        if len(starts) == 3:
            send(signal.SIGTERM)()

    supervise(sh("echo started; kill -9 $$"), time=time, react={"started": age})

    assert starts == [0, 60, 120]


@pytest.mark.parametrize(
    ("runs", "pauses"),
    [
        ([0] * 9, [0, 0, 0, 0, 1, 2, 4, 5, 5]),
        ([4, 4, 4, 4, 5, 4, 4, 4, 4, 4], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ([0, 0, 0, 0, 0, 5, 0], [0, 0, 0, 0, 1, 0, 0]),
    ],
)
def test_child_that_works_and_dies_soon_pauses_from_the_fifth_time(runs, pauses):
    pausing = RestartDelays()

    assert [pausing.after(timedelta(seconds=ran), has_worked=True) for ran in runs] == [
        timedelta(seconds=each) for each in pauses
    ]


def test_child_that_has_done_anything_comes_back_soon_and_is_never_given_up():
    time = ManualTime()
    ends = []

    def has_worked(how):
        ends.append((how, time.now))
        if len(ends) == 2 * SAME_CRASHES:
            supervisor.stop()
        return True

    child = Child("child", ["sh", "-c", "echo same; exit 1"], on_end=has_worked)
    supervisor = Supervisor([child], clock=time, selector=time)

    assert supervisor.run() == 0
    assert ends == [("exit status 1", now) for now in (0, 0, 0, 0, 0, 1, 3, 7, 12, 17)]


def test_supervisor_does_not_poll_while_children_run():
    time = ManualTime()
    running = []

    def stop():
        running.extend(time.timeouts)
        send(signal.SIGTERM)()

    supervise(sh("echo one; read x < /dev/null; echo two; exec sleep 1000"), time=time, react={"two": stop})

    assert set(running) == {None}
    assert len(running) <= 3


MISSING = "echo Traceback; echo \"No module named 'packaging'\"; exit 1"


QUICK = {"delays": RestartDelays(timedelta(milliseconds=1), timedelta(milliseconds=10))}


def test_same_crash_five_times_in_a_row_stops_all_and_is_told_once(caplog):
    caplog.set_level(logging.ERROR)

    status, lines = supervise(sh(MISSING), **QUICK)

    assert status == 1
    assert lines == [("child", "Traceback"), ("child", "No module named 'packaging'")]
    assert caplog.messages == [
        "child crashed 5 times in a row in the same way: No module named 'packaging'; stopping"
    ]


@pytest.mark.parametrize(
    "script",
    [
        "echo $$; exit 1",  # another last line each time
        "echo same; exit 7",  # a handler that ends its process
        "echo same; kill -9 $$",  # the kernel, out of memory
    ],
)
def test_other_deaths_are_never_final(script):
    heard = []

    def on_line(_name, line):
        heard.append(line)
        if len(heard) == 8:
            supervisor.stop()

    supervisor = Supervisor([sh(script)], on_line=on_line, **QUICK)

    assert supervisor.run() == 0


def test_child_that_recovers_from_a_crash_is_heard(tmp_path):
    once = (
        f"echo started; [ -e {tmp_path}/second ] || {{ touch {tmp_path}/second; exit 1; }}; exec sleep 1000"
    )
    heard = []

    def on_line(_name, line):
        heard.append(line)
        if len(heard) == 2:
            supervisor.stop()

    supervisor = Supervisor([sh(once)], on_line=on_line, crashed_within=timedelta(seconds=1), **QUICK)

    assert supervisor.run() == 0


def test_status_78_of_a_child_stops_the_others(caplog):
    caplog.set_level(logging.ERROR)

    status, lines = supervise(
        sh("trap 'echo stopped; exit' TERM; echo ready; while :; do sleep 1000 & wait; done", "server"),
        Child("worker", [sys.executable, "-c", "raise SystemExit(78)"]),
    )

    assert status == 78
    assert ("server", "stopped") in lines or lines == []  # it may be stopped before it is ready
    assert caplog.messages == ["worker cannot work as it is configured (exit status 78); stopping"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_children_politely(signum):
    script = "trap 'echo bye; exit' TERM; echo ready; while :; do sleep 1000 & wait; done"

    status, lines = supervise(sh(script), react={"ready": send(signum)})

    assert (status, lines) == (0, [("child", "ready"), ("child", "bye")])


def test_hangup_that_restarts_children_is_heard_under_nohup():
    starts = count(1)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def started():
        os.kill(os.getpid(), signal.SIGHUP if next(starts) == 1 else signal.SIGTERM)

    try:
        status, lines = supervise(
            sh("echo ready; exec sleep 1000"), react={"ready": started}, restarts_on_hangup=True
        )
    finally:
        signal.signal(signal.SIGHUP, before)

    assert (status, lines) == (0, [("child", "ready")] * 2)


def test_stubborn_child_is_killed_after_the_grace(caplog):
    grace = timedelta(milliseconds=50)

    status, lines = supervise(sh(STUBBORN), react={"ready": "stop"}, grace=grace)

    assert (status, lines[0]) == (0, ("child", "ready"))
    assert caplog.messages == ["child is killed: did not end in time"]


def test_second_sigint_is_handed_on_and_the_third_kills(caplog):
    script = (
        "trap 'echo waits' TERM; trap 'echo hurries' INT; echo ready; while :; do sleep 1000 & wait; done"
    )
    react = dict.fromkeys(("ready", "waits", "hurries"), send(signal.SIGINT))

    status, lines = supervise(sh(script), react=react)

    assert (status, [line for _, line in lines]) == (0, ["ready", "waits", "hurries"])
    assert caplog.messages == ["child is killed: still at work though Ctrl-C was pressed again"]


def test_child_that_hurries_is_not_killed(caplog):
    script = (
        "trap 'echo waits' TERM; trap 'echo bye; exit' INT; echo ready; while :; do sleep 1000 & wait; done"
    )
    react = dict.fromkeys(("ready", "waits"), send(signal.SIGINT))

    status, lines = supervise(sh(script), react=react)

    assert (status, [line for _, line in lines]) == (0, ["ready", "waits", "bye"])
    assert not caplog.messages


def test_child_that_does_not_hurry_is_killed_soon():
    react = dict.fromkeys(("ready", "refuses"), send(signal.SIGINT))
    script = f"trap '' INT; {STUBBORN}"

    status, _ = supervise(sh(script), react=react, hurry=timedelta(milliseconds=50))

    assert status == 0


def test_second_sigterm_does_not_shorten_the_grace():
    loop = "while :; do sleep 1000 & wait; done"
    script = f"trap 'echo again; trap \"echo bye; exit\" TERM; {loop}' TERM; echo ready; {loop}"
    react = {"ready": send(signal.SIGTERM), "again": send(signal.SIGTERM)}
    grace = timedelta(milliseconds=500)

    _, lines = supervise(sh(script), react=react, grace=grace)

    assert lines == [("child", "ready"), ("child", "again")]


def test_handlers_of_the_caller_are_restored():
    before = [
        signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP)
    ]

    supervise(sh("echo ready; exec sleep 1000"), react={"ready": "stop"})

    after = [
        signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP)
    ]
    assert after == before
    assert signal.set_wakeup_fd(-1) == -1


def test_megabyte_of_output_arrives_line_by_line():
    program = "for i in range(20000): print(f'{i:059}')\nprint('x' * 1_000_000, end='')"

    _, lines = supervise(
        Child("loud", [sys.executable, "-c", program]),
        sh("read x < /dev/null; exec sleep 1000"),
        react={"x" * 1_000_000: "stop"},
    )

    assert [line for _, line in lines[:20000]] == [f"{i:059}" for i in range(20000)]
    assert len(lines) == 20001


def test_stderr_is_read_as_lines_too():
    script = "trap 'printf last; exit' TERM; echo out; echo err >&2; while :; do sleep 1000 & wait; done"

    _, lines = supervise(sh(script), react={"err": "stop"})

    assert [line for _, line in lines] == ["out", "err", "last"]


def test_output_goes_where_the_child_says(tmp_path):
    with (tmp_path / "out").open("wb") as out:
        _, lines = supervise(
            sh('echo "$WORD"', "quiet", stdout=out, env={"WORD": "hello"}),
            sh(f"until grep hello {tmp_path}/out; do :; done; exec sleep 1000"),
            react={"hello": "stop"},
        )

    assert lines == [("child", "hello")]
    assert (tmp_path / "out").read_text().startswith("hello\n")


def test_program_that_is_not_there_is_tried_again():
    time = ManualTime()
    lines = []

    def on_line(_, line):
        lines.append(line)
        if len(lines) == 2:
            send(signal.SIGTERM)()

    Supervisor([Child("absent", ["/no/such/program"])], on_line=on_line, clock=time, selector=time).run()

    assert lines == ["could not run /no/such/program: No such file or directory"] * 2


def test_group_of_a_dead_child_ends_with_it(await_end):
    time = ManualTime()
    pids = []

    def on_line(_, line):
        pids.append(int(line))
        if len(pids) == 2:
            send(signal.SIGTERM)()

    Supervisor([sh("sleep 1000 & echo $!; exit 1")], on_line=on_line, clock=time, selector=time).run()

    await_end(*pids)


def test_child_that_may_end_is_not_started_again_once_it_has():
    status, lines = supervise(
        sh("echo over; exit 0", name="may", may_end=True),
        sh("sleep 0.2; echo again", name="other"),
        react={"again": "stop"},
        delays=RestartDelays(timedelta(), timedelta()),
    )

    assert (status, lines) == (0, [("may", "over"), ("other", "again")])


@pytest.mark.parametrize("forked", [True, False])
def test_child_is_sent_the_signal_that_it_wants_when_its_supervisor_is_killed(tmp_path, await_end, forked):
    script = "trap 'echo told > {}; exit' TERM; echo $$; while :; do sleep 0.1; done".format(
        tmp_path / "told"
    )
    what = (
        f"run=lambda: os.execv('/bin/sh', {['sh', '-c', script]!r})"
        if forked
        else f"{['sh', '-c', script]!r}"
    )
    program = (
        "import os, signal\nfrom hookonce.receiver.processes.supervisor import Child, Supervisor\n"
        f"Supervisor([Child('child', {what}, on_death=signal.SIGTERM)]).run()"
    )

    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as supervisor:
        pid = int(supervisor.stdout.readline())
        supervisor.kill()

    await_end(supervisor.pid, pid)
    assert (tmp_path / "told").read_text() == "told\n"


def test_error_in_the_callback_ends_all_children(await_end):
    pids = []

    def on_line(_, line):
        pids.append(int(line))
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Supervisor([sh("echo $$; exec sleep 1000")], on_line=on_line).run()

    await_end(*pids)


def test_killed_supervisor_leaves_no_child_behind(await_end):
    program = (
        "from hookonce.receiver.processes.supervisor import Child, Supervisor\n"
        "script = 'trap \"\" TERM INT; echo $$; exec sleep 1000'\n"
        "Supervisor([Child(str(i), ['sh', '-c', script]) for i in range(2)]).run()"
    )

    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as supervisor:
        pids = [int(supervisor.stdout.readline()) for _ in range(2)]
        supervisor.kill()

    await_end(supervisor.pid, *pids)
