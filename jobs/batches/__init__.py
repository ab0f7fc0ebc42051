"""Handlers that take many events at once, each of which keeps a run of its own (docs/decisions/0019).

- `registration`: `@on_batch`
- `batch_attempt`: one attempt of a batch: what its handler is given, and how it ends
"""
