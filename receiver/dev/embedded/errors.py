"""The one error of the embedded servers."""


class EmbeddedError(RuntimeError):
    """An embedded server could not be found, started or used; the message says what to do."""
