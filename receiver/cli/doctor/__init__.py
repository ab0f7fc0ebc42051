"""Checks of `hookonce doctor`.

`configuration` looks at what is configured, `handlers` has a worker load them, `servers` looks at PostgreSQL, Redis and
the workers, `slots` at workers that run many at once, `ledger_checks` at what the ledger holds, `encryption` at whether
everything that is sealed can be opened, and `brokers` at the places where events go on to, or come from.
"""
