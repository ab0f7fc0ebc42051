"""The benchmark of hookonce: its rates, latencies, CPU and memory, by `python -m bench`.

How it is measured is in docs/reference/measurements.md, what was found in docs/explanation/benchmarks.md.

`__main__` reads the command line, `run` is what scenarios work with. `load` makes deliveries and sends them, `servers`
runs ours and says what they cost, `peers` is what we are compared with, `scenarios` is what is measured, `report` says
what came out. Nothing but its tests imports it.
"""
