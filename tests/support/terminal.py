"""A command at a real terminal of 80 columns and 24 rows: what is on the screen when its output has come.

A pager shows the first rows; what is longer than the screen without one has scrolled away but for its end.
"""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios

COLUMNS, ROWS = 80, 24
SILENCE = 0.3
"""Seconds without output after which a pager waits for a key."""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][A-Z0-9]?|\r|\x07|\x08")
_PAGED = "\x1b[?1049h"


def screen(*command):
    """Run a command of hookonce; return the rows that a person sees, and whether a pager shows them."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "LESS"}}
    if shutil.which("less") is None:  # it shows what a pager shows first
        environ["PAGER"] = f"head -n {ROWS - 1}"
    with subprocess.Popen(
        [sys.executable, "-m", "hookonce.receiver.cli", *map(str, command)],
        env={**environ, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ):
        os.close(theirs)
        written = _until_the_end(ours)
        os.close(ours)
    is_paged = _PAGED in written
    text = written.partition(_PAGED)[2].partition("\x1b[?1049l")[0] if is_paged else written
    lines = _CONTROL.sub("", text).rstrip("\n").split("\n")
    rows = [line[at : at + COLUMNS] for line in lines for at in range(0, max(len(line), 1), COLUMNS)]
    return (rows[: ROWS - 1] if is_paged else rows[1 - ROWS :]), is_paged


def _until_the_end(ours):
    """Read until the command has ended; a pager is left by its key once it waits for one."""
    written = b""
    while True:
        if not select.select([ours], [], [], SILENCE)[0]:
            if _PAGED.encode() in written:
                os.write(ours, b"q")
            continue
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # Linux says so where nobody writes any more
            return written.decode()
        if not piece:
            return written.decode()
        written += piece
