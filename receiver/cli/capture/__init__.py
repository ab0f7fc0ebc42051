"""The parts of the capture command.

`server` takes requests on this machine, `ledger_watch` finds those that a running receiver keeps, and `masking` takes
credentials out of what goes into a file.
"""
