"""What the doctor command checks.

`servers` looks at PostgreSQL, Redis and the workers, `encryption` at whether everything that is sealed can be opened.
"""
