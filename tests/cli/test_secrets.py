import pytest

from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import handshake_secrets

TABLES = """
[sources.asana]
secrets = ["env:ASANA_SECRET?"]
[sources.notion]
secrets = ["env:NOTION_SECRET"]
"""


@pytest.fixture
def kept(inbox, ledger, monkeypatch):
    (inbox / "hookonce.toml").write_text(TABLES)
    monkeypatch.setenv("NOTION_SECRET", "a-configured-secret")
    handshake_secrets.keep(ledger, "asana", "handed-to-asana-0001", OFF)
    handshake_secrets.keep(ledger, "notion", "handed-to-notion-0001", OFF)
    return ledger


@pytest.mark.usefixtures("kept")
def test_secrets_lists_what_was_handed_out_and_shows_it_when_asked(hookonce):
    hidden, shown = (hookonce("sources", "secrets", "list", "--json", *more) for more in ((), ("--show",)))

    assert [(row["source"], row["is_in_use"], row["secret"]) for row in hidden.documents] == [
        ("asana", True, None),
        ("notion", False, None),
    ]
    assert [row["secret"] for row in shown.documents] == ["handed-to-asana-0001", "handed-to-notion-0001"]
    assert b"handed-to" not in hidden.out + hookonce("sources", "secrets", "list").out
    assert b"handed-to-asana-0001" in hookonce("sources", "secrets", "list", "--show").out


@pytest.mark.usefixtures("kept")
def test_doctor_and_sources_say_that_a_secret_was_handed_out(hookonce):
    findings = {row["check"]: row for row in hookonce("doctor", "--json").documents}
    listed = {
        row["name"]: row["has_handed_out_secret"] for row in hookonce("sources", "list", "--json").documents
    }

    assert "is trusted" in findings["source asana"]["text"]
    assert "is not among the configured ones" in findings["source notion"]["text"]
    assert listed == {"asana": True, "notion": True}
