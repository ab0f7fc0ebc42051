"""What hookonce costs: load, scenarios and figures, `python -m bench`. How and why: docs/benchmarks.md."""
