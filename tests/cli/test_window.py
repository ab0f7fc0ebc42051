"""`hookonce events forget-window`: what counts is in the ledger."""

KEY = "SELECT window_key FROM hookonce.ledger"
NOWHERE = "redis://127.0.0.1:1/0"


def test_window_forget_has_the_ledger_make_another_key(inbox, ledger, hookonce, redis_url, monkeypatch):  # noqa: ARG001
    before = ledger.execute(KEY).fetchone()
    monkeypatch.setenv("REDIS_URL", redis_url)

    forgotten = hookonce("events", "forget-window")

    assert (forgotten.code, forgotten.err) == (0, "forgot 0 event ids\n")
    assert ledger.execute(KEY).fetchone() != before


def test_window_forget_does_what_counts_while_redis_is_away(inbox, ledger, hookonce, monkeypatch):  # noqa: ARG001
    before = ledger.execute(KEY).fetchone()
    monkeypatch.setenv("REDIS_URL", NOWHERE)

    forgotten = hookonce("events", "forget-window")

    assert forgotten.code == 0
    assert "the window is reset" in forgotten.err
    assert ledger.execute(KEY).fetchone() != before
