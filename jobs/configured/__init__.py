"""Handlers that the configuration makes.

- `commands`: the handlers of `[commands.NAME]`, and the pydantic models that they name
- `forwards`: the handlers of `[forwards.NAME]`, which send events on
- `origin`: what these know of a run besides
- `cli`: `hookonce forwards`
"""
