"""How many runs a worker process has under way at once: `[receiver] concurrency`, HOOKONCE_CONCURRENCY."""

from collections.abc import Mapping

VARIABLE = "HOOKONCE_CONCURRENCY"
MAX_CONCURRENCY = 256
"""Each takes a thread, and a connection while it has a transaction."""


def concurrency(of_file: int, environ: Mapping[str, str], mistakes: list[str]) -> int:
    """Return what the environment says, or else the file."""
    said = environ.get(VARIABLE)
    if not said:
        return of_file
    if said.isascii() and said.isdigit() and 1 <= int(said) <= MAX_CONCURRENCY:
        return int(said)
    mistakes.append(f"{VARIABLE} is {said!r}; expected a number from 1 to {MAX_CONCURRENCY}")
    return of_file
