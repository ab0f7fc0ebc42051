"""Checks of `hookonce doctor`.

`configuration` looks at what is configured, `handlers` has a worker load them, `servers` looks at PostgreSQL, Redis and
the workers, `slots` at workers that run many at once, `lost_events` at whether something is left of each event,
`never_came` at what senders list, `conflicts` at sources whose ids do not tell their events apart, `encryption` at
whether everything that is sealed can be opened, `alert_targets` at targets that alerts did not reach, and `brokers` at
the places where events go on to, or come from.
"""
