"""Ctrl-C while the program `hookonce` loads: it ends without a word, for nothing is under way yet.

So this is imported first, and does so by that; where others import the command line, their Ctrl-C is theirs.
"""

import signal
import sys

if sys.argv[0].endswith("hookonce") and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` again: the command is there."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
