"""The parts of the capture command.

`server` takes requests on this machine, `masking` takes credentials out of what goes into a file, and `shapes` says by
what algorithms a delivery could be signed.
"""
