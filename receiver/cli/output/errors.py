"""What a command may raise besides the errors of what it calls; `receiver.cli.output.exits` knows the exit codes."""


class NotFound(Exception):  # noqa: N818  a state of the world
    """There is nothing of the name or id that was given; exit 4."""
