"""Tokens of the admin API: listed and revoked from anywhere, and made on the machine of the ledger alone."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.desk.models import Listed, RequestModel, Text
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Desk, action, looks_at
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope, Token


class TokenPath(RequestModel):
    """A token by its name."""

    name: Text


@action(scope=Scope.READ)
def list_tokens(desk: Desk) -> Listed[Token]:
    """List the tokens of the admin API by name, expired ones too; none is shown."""
    return Listed[Token](data=api_tokens.listing(desk.connection))


def _require(known: Sequence[Token], which: TokenPath) -> None:
    names = [each.name for each in known]
    if which.name not in names:
        raise NotFound(f"no token is called {which.name!r}{did_you_mean(which.name, names)}")


@action(scope=Scope.ADMIN, looks=looks_at(list_tokens, _require))
def revoke_token(desk: Desk, which: TokenPath) -> None:
    """Make a token worthless, at once."""
    if not api_tokens.revoke(desk.connection, which.name, desk.who):
        _require(api_tokens.listing(desk.connection), which)


def make_token(desk: Desk, name: str, scopes: Collection[Scope], lasts: timedelta | None) -> str:
    """Make a token and return it, once. No action: a token that makes others would outlive its own revocation.

    Raises: ValueError for a name that is taken, or can't be one.
    """
    return api_tokens.create(desk.connection, name, scopes, lasts, desk.who)
