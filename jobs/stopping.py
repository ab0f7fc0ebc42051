"""Whether this process was asked to stop, and whether it was asked again."""

import signal
import threading

stopping = threading.Event()
"""Set when this process was asked to stop: the attempt under way is finished, the rest is let go of."""
hurrying = threading.Event()
"""Set when somebody at a terminal will not wait for that: what can be given back is given back at once."""


def tell(signum: int) -> bool:
    """Hear SIGTERM or SIGINT; return whether it was the first. Ctrl-C after that hurries, SIGTERM again does not."""
    is_first = not stopping.is_set()
    if signum == signal.SIGINT and not is_first:
        hurrying.set()
    stopping.set()
    return is_first
