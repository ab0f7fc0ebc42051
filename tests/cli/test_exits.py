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


def test_command_that_can_not_write_says_where_and_what_to_do(hookonce, place):
    (place / "in_the_way").touch()

    failed = hookonce("man", "--dir", "in_the_way/man")

    assert failed.code == 1
    assert failed.err == (
        "hookonce: in_the_way/man: Not a directory; name another place, or see to who may write there\n"
    )
