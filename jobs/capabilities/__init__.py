"""Capabilities of an attempt's event beside its data; `jobs.attempts.handler_event` makes them.

- `steps`: parts of a handler that are done once for its event
- `waits`: waits for another event, and the handlers that note which have come
"""
