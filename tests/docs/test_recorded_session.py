"""The picture of a session is what the commands print today."""

from tests.support import recorded_session


def test_picture_shows_what_the_commands_print():
    assert recorded_session.PICTURE.read_text(encoding="utf-8") == recorded_session.record(), (
        "run: python -m tests.support.recorded_session"
    )


def test_picture_needs_nothing_from_another_host():
    picture = recorded_session.PICTURE.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")

    assert "url(" not in picture
    assert "href" not in picture
    assert "<script" not in picture
