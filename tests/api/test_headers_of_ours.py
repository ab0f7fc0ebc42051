"""What a sender calls an event stands in no header of ours: it may hold what ends a header, or a file's name."""

from urllib.parse import quote

import pytest

ODD = [
    'a"b',
    "a\r\nX-Evil: 1",
    "größe",
    "日本",
    "../../etc/passwd",
    "a; filename=evil.exe",
    "%0d%0a",
    "\U0001f600",
]


@pytest.mark.parametrize("name", ODD)
def test_id_of_a_sender_stands_in_no_header(inbox, name):
    (number,) = inbox.deliver(name, body=b'{"a": 1}')
    inbox.connection.execute(
        "INSERT INTO hookonce.conflicts (event, fingerprint, headers, body) VALUES (%s, '\\x01', '{}', '{}')",
        [number],
    )
    paths = [f"/events/{quote('stripe:' + name, safe='')}{part}" for part in ("", "/body", "/other-bodies/1")]

    answers = [inbox.ask("GET", path) for path in paths]

    assert [answer.status_code for answer in answers] == [200] * 3
    told = "".join(str(answer.headers) for answer in answers)
    assert name not in told
    assert "X-Evil" not in told
    assert f'filename="event-{number}-conflict-1.bin"' in told
