"""Tokens and keys as any face shows them: no secret is in an answer, and what is revoked is worth nothing."""

import pytest

from hookonce.receiver.desk.access.tokens import make_token
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope


@pytest.fixture
def token(here):
    here.who = "a person"
    return make_token(here, "deploy", {Scope.READ, Scope.REPLAY}, None)


def test_tokens_are_listed_without_what_proves_them(here, token):
    (listed,) = here.ask("list_tokens", scope="read").json["data"]

    assert (listed["name"], listed["scopes"], listed["is_expired"]) == ("deploy", ["read", "replay"], False)
    assert token not in str(listed)


def test_revoked_token_is_worth_nothing(here, token):
    refused = here.ask("revoke_token", scope="replay", name="deploy")
    missed = here.ask("revoke_token", name="deplo")
    revoked = here.ask("revoke_token", name="deploy")

    assert (refused.kind, missed.kind, revoked.kind) == ("Forbidden", "NotFound", "done")
    assert "did you mean 'deploy'?" in missed.json["detail"]
    assert api_tokens.find(here.connection, api_tokens.digest(token)) is None


def test_keys_are_listed_for_admins_with_the_rows_that_need_each(here):
    here.deliver("evt_1")

    refused = here.ask("list_keys", scope="read")
    (listed,) = here.ask("list_keys").json["data"]

    assert refused.kind == "Forbidden"
    assert (listed["key"], listed["use"], listed["rows"]["bodies"]) == (None, "in the clear", 1)
