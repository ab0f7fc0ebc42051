"""What is kept of a failed attempt, so that somebody knows why without having been there.

- `error_summary`: one line
- `traceback_capture`: frames with their code, as data
- `issues`: which failures are of one cause
- `release`: of which release of the user's code
"""
