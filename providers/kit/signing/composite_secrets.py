"""Secrets of several parts: `key:secret`, or a JSON object with the parts as its fields."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.reading.bodies import header_of


def parts_of(secret: str, *names: str) -> tuple[str, ...]:
    """Return the parts of a secret, in the order of `names`; the last one may hold colons.

    Raises: ValueError with what a right secret looks like, never with the secret.
    """
    text = secret.strip()
    try:
        said = json.loads(text) if text.startswith("{") else text.split(":", len(names) - 1)
        parts = tuple(said[name] for name in names) if isinstance(said, dict) else tuple(said)
    except (ValueError, LookupError, RecursionError):
        parts = ()
    if len(parts) != len(names) or not all(isinstance(part, str) and part.strip() for part in parts):
        fields = ", ".join(f'"{name}"' for name in names)
        msg = f"the secret is not usable; expected '{':'.join(names)}', or a JSON object with {fields}"
        raise ValueError(msg)
    return parts


def checker(*names: str) -> Callable[[str], None]:
    """Return a `check_secret` for secrets of these parts."""

    def check(secret: str) -> None:
        parts_of(secret, *names)

    return check


def checker_of_either(expected: str, *checks: Callable[[str], None]) -> Callable[[str], None]:
    """Return a `check_secret` for secrets of several forms; `expected` says what a right one looks like."""

    def check(secret: str) -> None:
        for each in checks:
            with suppress(ValueError):
                return each(secret)
        msg = f"the secret is not usable; expected {expected}"
        raise ValueError(msg)

    return check


def all_parts_of(secrets: Sequence[str], *names: str) -> list[tuple[str, ...]]:
    """Return the parts of every usable secret; others never open anything. Raises: Rejected(no_secret) for none."""
    known = []
    for secret in secrets:
        try:
            known.append(parts_of(secret, *names))
        except ValueError:
            continue
    if not known:
        raise Rejected(Reason.NO_SECRET, f"no usable secret; expected '{':'.join(names)}'")
    return known


def secrets_for(delivery: Delivery, header: str, secrets: Sequence[str], *names: str) -> list[str]:
    """Return the last parts of those secrets whose first part is what `header` names: a key's or an account's id.

    Secrets without these parts never open anything; none is left if all are such.
    Raises: Rejected(missing_header), Rejected(bad_signature) where nothing is configured for that id.
    """
    known = []
    for secret in secrets:
        try:
            known.append(parts_of(secret, *names))
        except ValueError:
            continue
    if not known:
        return []
    name, account = header_of(delivery.headers, (header,))
    own = [parts[-1] for parts in known if parts[0] == account]
    if not own:
        raise Rejected(Reason.BAD_SIGNATURE, f"no secret of this source is of what header {name} names")
    return own


def parts_or_none(secret: str, *names: str) -> tuple[str, ...] | None:
    """Return the parts of a secret, None if it is of another form."""
    try:
        return parts_of(secret, *names)
    except ValueError:
        return None
