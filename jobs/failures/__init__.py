"""A failed attempt as it is kept: its error, traceback, issue and release tell why it failed.

- `error_summary`: one line
- `traceback_capture`: frames with their code, as data
- `local_values`: values of their variables, as bounded text
- `issues`: which failures are of one cause
- `release`: of which release of the user's code
"""
