"""Tells which of a source's secrets verified a delivery, so that an operator sees when the old one may go.

A slot is a secret's place in the configuration, from 1: what is counted says nothing about the secret itself.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from providers import Rejected
from receiver.keys import KeyUnavailable


def verifying_slot(verify: Callable[[Sequence[str]], None], secrets: Sequence[str]) -> int | None:
    """Verify with each secret alone, the first one first; give the slot.

    None if there is only one secret, which leaves nothing to be told, or if no single one is enough.

    What no secret verifies alone is put to all of them at once, as providers expect: theirs is the verdict, and
    the reason that the sender and the operator see. So the usual delivery costs one signature, and only a
    refused one costs more than it did. Raises what `verify` raises with all secrets.
    """
    if len(secrets) > 1:
        for slot, secret in enumerate(secrets, 1):
            with suppress(Rejected, KeyUnavailable):
                verify((secret,))
                return slot
    verify(secrets)
    return None
