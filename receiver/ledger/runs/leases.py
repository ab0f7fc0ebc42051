"""What whoever worked under a lease is told when it is no longer theirs."""


class LeaseLost(Exception):  # noqa: N818  a verdict about who may write
    """The lease ran out and somebody else may have what it was on, or it was ended for us: nothing may be written."""
