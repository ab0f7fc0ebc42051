"""Planted mistakes, and whether the tests notice: `make mutants`, or `python -m tests.mutants`.

A mutant is one realistic mistake in the product: `mutants.toml` has them, with the promise that each breaks. The suite
is run once with a probe at the line of each; then each mutant is planted into a copy, and the tests that execute its
line are run until one fails. What the suite of before caught is in `verdicts.json`: a suite that is made smaller must
catch that still.

- `mutant`: one mistake, read from `mutants.toml`
- `site`: the place of a probe in a module
- `copies`: a copy of a checkout in which the product can be changed
- `reach`: which tests execute which line
- `choice`: which of them are run, and in which order
- `trial`: one mutant against its tests
- `record`: what is kept of both in `.mutants/`, and `verdicts.json`
- `inside`: what is put beside the packages of a copy
"""
