"""The schema this code was written for; `serve` and `worker` refuse an older one."""

REVISION = "0024"


class SchemaBehind(Exception):  # noqa: N818  a state of the world that one command mends
    """The database's schema is older than this code; `hookonce db upgrade` mends it."""
