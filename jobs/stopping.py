"""Whether this process was asked to stop."""

import threading

stopping = threading.Event()
"""Set when this process was asked to stop: the attempt under way is finished, the rest is let go of."""
