import hashlib
import re

import pytest

from hookonce.receiver.ledger.access import api_tokens

pytestmark = pytest.mark.usefixtures("inbox")


def test_token_is_printed_alone_and_kept_as_a_hash(hookonce, ledger):
    made = hookonce("tokens", "create", "ci", "--scope", "read")

    (token,) = made.lines
    assert re.fullmatch(r"hko_[A-Za-z0-9_-]{43}", token)
    assert ledger.execute("SELECT hash FROM hookonce.api_tokens").fetchone() == (
        hashlib.sha256(token.encode()).digest(),
    )


def test_tokens_lists_name_scopes_and_expiry_but_no_token(hookonce):
    token = hookonce(
        "tokens", "create", "ci", "--scope", "replay", "--scope", "read", "--expires", "90d"
    ).lines[0]

    listed = hookonce("tokens", "list", "--json")

    assert [(d["name"], d["scopes"], d["is_expired"]) for d in listed.documents] == [
        ("ci", ["read", "replay"], False)
    ]
    assert token not in listed.out.decode() + hookonce("tokens", "list").out.decode()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["create", "ci", "--scope", "read"], "already"),
        (["create", "a b", "--scope", "read"], "not a name for a token"),
        (["create", "new"], "--scope"),
        (["create", "new", "--scope", "root"], "root"),
        (["create", "new", "--scope", "read", "--expires", "soon"], "90s"),
    ],
)
def test_token_is_not_made_of_what_can_be_none(hookonce, arguments, why):
    hookonce("tokens", "create", "ci", "--scope", "read")

    refused = hookonce("tokens", *arguments)

    assert (refused.code, refused.out) == (2, b"")
    assert why in refused.err


def test_tokens_revoke_ends_a_token_and_suggests_the_nearest(hookonce, ledger):
    token = hookonce("tokens", "create", "deploy", "--scope", "admin").lines[0]

    missed = hookonce("tokens", "revoke", "deplo")
    revoked = hookonce("tokens", "revoke", "deploy")

    assert (missed.code, revoked.code) == (4, 0)
    assert "did you mean 'deploy'?" in missed.err
    assert api_tokens.find(ledger, api_tokens.digest(token)) is None


def test_tokens_revoke_forgets_what_the_token_was_answered(hookonce, ledger):
    hookonce("tokens", "create", "ci", "--scope", "read")
    ledger.execute(
        "INSERT INTO hookonce.idempotency (scope, key, fingerprint) SELECT id::text, 'k', '' FROM hookonce.api_tokens"
    )

    hookonce("tokens", "revoke", "ci")

    assert ledger.execute("SELECT FROM hookonce.idempotency").rowcount == 0


def test_tokens_are_audited_without_the_token(hookonce, ledger):
    hookonce("tokens", "create", "ci", "--scope", "read")
    hookonce("tokens", "revoke", "ci")

    rows = ledger.execute("SELECT action, subject, detail FROM hookonce.audit ORDER BY id").fetchall()

    assert rows == [("create token", "token ci", {}), ("revoke token", "token ci", {})]


def test_token_that_expired_is_none(hookonce, ledger):
    token = hookonce("tokens", "create", "ci", "--scope", "read", "--expires", "1h").lines[0]
    assert api_tokens.find(ledger, api_tokens.digest(token)).name == "ci"

    ledger.execute("UPDATE hookonce.api_tokens SET expires_at = now()")

    assert api_tokens.find(ledger, api_tokens.digest(token)) is None
