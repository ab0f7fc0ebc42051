r"""Keys that are not configured but fetched: what a provider says about them, and how it asks.

A provider never fetches. It raises KeyNeeded(url), the receiver fetches and calls again with `keys`. A second
KeyNeeded for a URL that was given means: the document there does not hold the key any more, or not yet.
What may be fetched is declared by the provider as patterns of whole URLs (`fetches`), and checked on both sides:

    Sender(fetches=(r"https://api\.example\.com/certs/[A-Za-z0-9-]{1,80}",), …)

A vendor's key vouches for the vendor, not for our account with it: everybody's deliveries are signed with it.
So the secret of such a source is what tells ours from others' (an account, a topic, an e-mail address), with a
key of one's own behind it where nothing shall be fetched: `name:-----BEGIN PUBLIC KEY-----...`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from hookonce.providers import KeyNeeded, Reason, Rejected

Documents = Mapping[str, bytes] | None
"""What the receiver fetched: URL → document; None to begin with."""
_MAX_URL_LENGTH: Final = 1000
_KEY: Final = re.compile(r":?\s*(-----BEGIN |\{)")


class Owner(NamedTuple):
    """The account whose deliveries are ours: `name`, and the key (text) that signs them if it is not to be fetched."""

    name: str
    key: str = ""


def may_fetch(url: str, patterns: Sequence[str]) -> bool:
    """Whether all of `url` fits one of `patterns`, in plain ASCII and of a bounded length."""
    fits = any(_compiled(pattern).fullmatch(url) for pattern in patterns)
    return fits and url.isascii() and len(url) <= _MAX_URL_LENGTH


def fetched(url: object, keys: Documents, patterns: Sequence[str], post: bytes | None = None) -> bytes:
    """Return the document at `url`, which the sender named.

    Raises: KeyNeeded if it is not there yet, Rejected(bad_signature) for a URL that fits none of `patterns`.
    """
    if not isinstance(url, str) or not may_fetch(url, patterns):
        raise Rejected(Reason.BAD_SIGNATURE, "the delivery names a key that is not at its sender's")
    if keys is None or url not in keys:
        raise KeyNeeded(url, post)
    return keys[url]


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    if not pattern.startswith("https://"):
        msg = f"{pattern!r} may not be fetched; expected a pattern that starts with https://"
        raise ValueError(msg)
    return re.compile(pattern, re.ASCII)


@lru_cache(maxsize=256)
def owner_of(secret: str, name: str, key: str = "key") -> Owner:
    """Read a secret: `name`, `name:PEM`, a PEM alone, or a JSON object with `name` and `key` as its fields.

    Raises: ValueError for a blank one.
    """
    text = secret.strip()
    match = _KEY.search(text)
    if text.startswith("{"):
        said = json.loads(text)
        if name in said or key in said:
            held = said.get(key, "")
            text = str(said.get(name, ""))
            return Owner(text, held if isinstance(held, str) else json.dumps(held))
    if match:
        return Owner(text[: match.start()].strip(), text[match.start() :].lstrip(": \n"))
    if not text:
        msg = f"the secret is blank; expected the {name}"
        raise ValueError(msg)
    return Owner(text)


def owners_of(secrets: Sequence[str], name: str, key: str = "key") -> list[Owner]:
    """Return all usable secrets, read. Raises: Rejected(no_secret) when none is left."""
    owners = []
    for secret in secrets:
        try:
            owners.append(owner_of(secret, name, key))
        except (ValueError, TypeError, RecursionError):
            continue
    if not owners:
        raise Rejected(Reason.NO_SECRET, f"no usable secret; expected the {name}")
    return owners
