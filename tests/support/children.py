"""A process of its own for a piece of a test, which may be killed at a failpoint."""

import json
import os
import signal


def in_child(work):
    """Do it in a process of its own, with connections of its own; whether it came to its end, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}, status
    return status == 0, json.loads(text) if text else None
