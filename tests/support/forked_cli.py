"""`hookonce` for tests that run many commands: each in a process of its own, forked from one that has imported all.

A command costs a tenth of its time so. What stays up, or is ended by a signal, is started as it is.
"""

import array
import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from pathlib import Path

import click

from hookonce.receiver.cli import COMMANDS, LazyGroup, main
from tests.support.waiting import until

STARTED_AS_THEY_ARE = ("capture", "demo", "dev", "serve", "sweep", "tail", "worker")
BACKLOG = 16
# The first lines are for the shell, since a path with a space can't stand behind #!; Python reads them as a text.
CLIENT = """\
#!/bin/sh
'''exec' {python} -ISs "$0" "$@"
' '''
import array, json, os, socket, sys

if not sys.argv[1:] or sys.argv[1] in {commands!r}:
    os.execv({real!r}, [{real!r}, *sys.argv[1:]])
asked = json.dumps({{"argv": sys.argv[1:], "cwd": os.getcwd(), "environ": dict(os.environ)}}).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(asked)
    sys.exit(int(server.recv(4) or b"70"))
"""


@contextlib.contextmanager
def hookonce(directory):
    """Start the server; put `hookonce` into the directory, for the PATH."""
    path = Path(directory) / "forked"
    real = str(Path(sys.executable).parent / "hookonce")
    client = Path(directory) / "hookonce"
    client.write_text(
        CLIENT.format(
            python=shlex.quote(sys.executable), commands=STARTED_AS_THEY_ARE, real=real, path=str(path)
        )
    )
    client.chmod(0o755)
    server = subprocess.Popen([sys.executable, __file__, path], env={**os.environ, "PYTHONUTF8": "1"})
    try:
        until(path.exists, seconds=60, process=server)
        yield
    finally:
        server.terminate()
        server.wait(10)


def serve(path):
    group = LazyGroup()
    for name in COMMANDS:
        group.get_command(click.Context(group), name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen(BACKLOG)
        Path(f"{path}.new").rename(path)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                answer(connection)
            connection.close()
            reap()


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def answer(connection):
    """Become the command, and say its exit code."""
    size, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
    asked = json.loads(received(connection, int.from_bytes(size, "big")))
    for here, given in enumerate(array.array("i", descriptors)):
        os.dup2(given, here)
        os.close(given)
    os.environ.clear()
    os.environ.update(asked["environ"])
    os.chdir(asked["cwd"])
    sys.argv = ["hookonce", *asked["argv"]]
    threading.Thread(target=end_with, args=(connection,), daemon=True).start()
    code = 70
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(str(code).encode())
        os._exit(code)


def end_with(connection):
    """End this process when whoever asked has ended."""
    connection.recv(1)
    os._exit(70)


def received(connection, size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


if __name__ == "__main__":
    serve(sys.argv[1])
