"""Notes which test executes a line, in whatever process: called by the statements that are planted into a copy.

Which test is at it the plugin says by a link of the name of the worker of pytest-xdist, which every process inherits
by its environment. So what a module's server does counts for the test that asked it, and not for the one it was
started in. A process without that environment notes the tests of all workers.
"""

import os

FOLDER = os.path.join(os.path.dirname(__file__), "mutants_reached")  # noqa: PTH118, PTH120  it is called very often
NOTES = os.path.join(FOLDER, "notes")  # noqa: PTH118
LINK = "at-"
_seen = set()


def note(site, when=None):
    """Note that the test under way executes the statement behind this; once per process and test. Raises nothing.

    `when` tells whether the mistake would make a difference, where that can be told.
    """
    try:
        if when is not None and not when():
            return
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        links = [LINK + worker] if worker else _all_links()
        for link in links:
            said = (site, os.readlink(f"{FOLDER}/{link}"))  # noqa: PTH115  the same
            if said not in _seen:
                _seen.add(said)
                _append("\t".join(said) + "\n")
    except Exception:  # noqa: BLE001, S110  the product goes on as if nothing stood here
        pass


def _all_links():
    return [each for each in os.listdir(FOLDER) if each.startswith(LINK)]  # noqa: PTH208  the same


def _append(line):
    descriptor = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
