import pytest


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "command",
    [
        ("db", "current"),
        ("db", "upgrade"),
        ("events", "list"),
        ("replay", "1"),
        ("stats",),
        ("sweep", "--once"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    ("url", "code"),
    [
        (None, 78),
        ("postgresql://u:s3cret%zz@127.0.0.1/x", 78),
        ("postgresql://u:s3cret@127.0.0.1:1/x", 69),
    ],
    ids=["no address", "malformed", "away"],
)
def test_command_says_what_is_wrong_with_the_database(hookonce, monkeypatch, command, url, code):
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:1")
    if url:
        monkeypatch.setenv("DATABASE_URL", url)

    failed = hookonce(*command)

    assert (failed.code, failed.lines) == (code, [])
    assert failed.err.startswith("hookonce: ")
    assert "s3cret" not in failed.err
