"""Parts of `hookonce dev`.

`introduction` is for its start, `screen` for a line, `reloading` for a change, `pulling` for events of another inbox.
"""
