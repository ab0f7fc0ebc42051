"""Senders that bring a token in whatever place their user has chosen: declared in one call.

    configure = token_sender("datadog", "basic", events=events, sender=Sender(id_is_signed=False, …))

A source then says where it is, `datadog = { in = "header:X-Token" }`, in the words of the provider `token`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hookonce.providers.kit.registry.declared_options import token_scheme
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.shared_token import Token
from hookonce.providers.kit.sender import Configured, Events, Sender
from hookonce.providers.kit.signing.verdict import Sign, signer


def token_sender(
    owner: str,
    usual: str,
    *,
    events: Events,
    sender: Sender,
    wrap: Callable[[Sign], Sign] = signer,
) -> Callable[[Mapping[str, Any]], Configured]:
    """Make the `configure` of a sender whose token is at `usual`, unless a source says `in` (and `prefix`).

    `sender` declares what the token does not tell; `wrap` adds the headers that hold ids and types.
    """

    def configure(options: Mapping[str, Any]) -> Configured:
        """Make the provider with a source's options. Raises: ValueError listing every mistake."""
        given = Options(options, owner)
        scheme = token_scheme(given, usual)
        given.done()
        return by_token(scheme, events=events, sender=sender, wrap=wrap)

    return configure


def by_token(
    scheme: Token, *, events: Events, sender: Sender, wrap: Callable[[Sign], Sign] = signer
) -> Configured:
    """Return a sender that brings this token."""
    return Configured(events=events, sign=wrap(scheme.sign), sender=replace(sender, scheme=scheme))
