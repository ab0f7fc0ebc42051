"""The program `hookonce`: Ctrl-C ends it without a word as long as it loads, when nothing is under way yet.

So this stands before the command line, which takes most of the time there is; `receiver.cli` hears Ctrl-C again once
the command is there.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started it has it ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from hookonce.receiver.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
