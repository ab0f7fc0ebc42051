"""Handlers that take many events at once, each of which keeps a run of its own (docs/decisions/0019).

- `registration`: `@on_batch`
"""
