"""Python programs for tests, forked from an interpreter that has imported what they need: a tenth of a start.

`WarmPython(*modules).start(["manage.py", "check"], …)` runs a script, `-m module` or `-c code` as `python` would: with
a working directory, an environment, standard output and descriptors of its own. Only what is about the start itself
(gevent, which patches before all imports; a module that is missing) is started as it is.
"""

import array
import atexit
import fcntl
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
FAILED = 1
ASIDE = 500  # descriptors from here on are in nobody's place


class WarmPython:
    """The client's side: starts the interpreter that is forked, at the first program."""

    def __init__(self, *modules):
        self._modules = modules
        self._parent = None

    def start(self, arguments, *, cwd, env, output, error=None, pass_fds=()):
        """Start a program; `output` and `error` are open files, `output` takes both if it is alone."""
        if self._parent is None:
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            command = [sys.executable, __file__, str(theirs.fileno()), *self._modules]
            self._parent = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
            theirs.close()
        told, tells = os.pipe()
        request = {"argv": arguments, "cwd": str(cwd), "environ": env, "pass_fds": list(pass_fds)}
        data = json.dumps(request).encode()
        descriptors = [output.fileno(), (error or output).fileno(), tells, *pass_fds]
        socket.send_fds(self._channel, [len(data).to_bytes(4, "big")], descriptors)
        self._channel.sendall(data)
        os.close(tells)
        return Process(arguments, told)

    def close(self):
        if self._parent is not None:
            self._channel.close()
            self._parent.wait(10)
            self._parent = None


class Process:
    """A program that runs, as `subprocess.Popen` has it."""

    def __init__(self, arguments, told):
        self.args, self.returncode = arguments, None
        self._told = os.fdopen(told)
        self.pid = int(self._told.readline())

    def poll(self):
        return self._look(0)

    def wait(self, timeout=None):
        if self._look(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout):
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode


def serve(channel):
    """Fork for each request until nobody is left who could make one; then end what is still there."""
    waking, wakes = os.pipe()
    for end in (waking, wakes):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    running = {}
    while True:
        ready, _, _ = select.select([channel, waking], [], [])
        if waking in ready:
            with suppress(BlockingIOError):
                os.read(waking, 4096)
            reap(running)
        if channel in ready:
            size, descriptors, _, _ = socket.recv_fds(channel, 4, 16)
            if not size:
                break
            request = json.loads(received(channel, int.from_bytes(size, "big")))
            fork(channel, request, list(array.array("i", descriptors)), running)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def reap(running):
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            pid, status = ended
            tells = running.pop(pid)
            with suppress(BrokenPipeError):
                os.write(tells, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(tells)


def fork(channel, request, descriptors, running):
    tells = descriptors[2]
    if (pid := os.fork()) == 0:
        code = FAILED
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            channel.close()
            become(request, descriptors)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
            if isinstance(end.code, str):
                sys.stderr.write(f"{end.code}\n")
        except BaseException:  # noqa: BLE001  the child ends here, whatever it was
            traceback.print_exc()
        finally:
            end_as_python_does()
            os._exit(code)
    os.write(tells, f"{pid}\n".encode())
    running[pid] = tells
    for each in descriptors:
        if each != tells:
            os.close(each)


def end_as_python_does():
    """Wait for threads, then call what is to be called at the end; what goes wrong there changes no exit status."""
    with suppress(BaseException):
        threading._shutdown()  # noqa: SLF001  the interpreter's own step, which os._exit leaves out
    with suppress(BaseException):
        atexit._run_exitfuncs()  # noqa: SLF001
    with suppress(ValueError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()


def become(request, descriptors):
    """Turn into the program: descriptors where it expects them, then its script, module or code."""
    output, error, tells, *passed = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, ASIDE) for each in descriptors)
    for each in (tells, *descriptors):
        os.close(each)
    places = {0: os.open(os.devnull, os.O_RDONLY), 1: output, 2: error}
    for number, each in (places | dict(zip(request["pass_fds"], passed, strict=True))).items():
        os.dup2(each, number, inheritable=True)
        os.close(each)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    if "HOOKONCE_FAILPOINT" in os.environ:
        failpoints = import_module("hookonce.receiver.failpoints")
        failpoints.arm(int(os.environ["HOOKONCE_FAILPOINT"]), os.environ["HOOKONCE_FAILPOINT_LOG"])
    first, *others = request["argv"]
    sys.path[0] = request["cwd"] if first in {"-c", "-m"} else str(Path(request["cwd"], first).parent)
    if first == "-c":
        sys.argv = ["-c", *others[1:]]
        exec(compile(others[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102  as `python -c`
    elif first == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *others]
        runpy.run_path(first, run_name="__main__")


def received(channel, size):
    data = b""
    while len(data) < size:
        data += channel.recv(size - len(data))
    return data


if __name__ == "__main__":
    for name in sys.argv[2:]:
        import_module(name)
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        serve(channel)
