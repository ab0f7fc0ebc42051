import hashlib
import re

import pytest

pytestmark = pytest.mark.usefixtures("inbox")


def test_token_is_printed_alone_and_kept_as_a_hash(hookonce, ledger):
    made = hookonce("tokens", "create", "ci", "--scope", "read")

    (token,) = made.lines
    assert re.fullmatch(r"hko_[A-Za-z0-9_-]{43}", token)
    assert ledger.execute("SELECT hash FROM hookonce.api_tokens").fetchone() == (
        hashlib.sha256(token.encode()).digest(),
    )


def test_tokens_lists_name_scopes_and_expiry_but_no_token(hookonce):
    made = hookonce("tokens", "create", "ci", "--scope", "replay", "--scope", "read", "--expires", "90d")

    listed = hookonce("tokens", "list", "--json")

    assert [(d["name"], d["scopes"], d["is_expired"]) for d in listed.documents] == [
        ("ci", ["read", "replay"], False)
    ]
    assert made.lines[0] not in listed.out.decode() + hookonce("tokens", "list").out.decode()


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


def test_revoked_token_is_audited_and_leaves_nothing_of_its_own(hookonce, ledger):
    hookonce("tokens", "create", "ci", "--scope", "read")
    ledger.execute(
        "INSERT INTO hookonce.idempotency (scope, key, fingerprint) SELECT id::text, 'k', '' FROM hookonce.api_tokens"
    )

    assert hookonce("tokens", "revoke", "ci").err == "revoked ci\n"

    assert ledger.execute("SELECT FROM hookonce.idempotency").rowcount == 0
    assert ledger.execute("SELECT action, subject, detail FROM hookonce.audit ORDER BY id").fetchall() == [
        ("create token", "token ci", {}),
        ("revoke token", "token ci", {}),
    ]
