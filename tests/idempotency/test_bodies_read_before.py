"""Whoever read a request before: another body under a key never gets the first one's answer."""

import pytest

from hookonce.receiver.endpoints.frameworks import request
from tests.support.idempotency.readers import KINDS, LOSES, SHOPS, body_of


@pytest.mark.parametrize("shop", SHOPS, ids=lambda each: each.__name__)
def test_body_that_was_read_before_is_told_from_another_or_refused(shop, store, connection):
    wrong = []
    for reader in shop.READERS:
        for kind in KINDS:
            connection.execute("DELETE FROM hookonce.idempotency")
            app = shop(store, reader)
            answers = [app.post(*body_of(kind, amount)) for amount in (5, 5, 6)]
            statuses = [answer.status for answer in answers]
            is_told = statuses == [201, 201, 409] and answers[1].is_replayed and len(app.done) == 1
            rows = connection.execute("SELECT key FROM hookonce.idempotency").fetchall()
            is_refused = reader in LOSES and statuses == [500] * 3 and not rows and not app.done
            wrong += [] if is_told or is_refused else [f"{reader} of {kind}: {statuses}"]

    assert wrong == []


@pytest.mark.parametrize("shop", SHOPS, ids=lambda each: each.__name__)
def test_form_without_fields_is_a_request_like_any(shop, store, connection):
    for reader in ("nobody", "form"):
        connection.execute("DELETE FROM hookonce.idempotency")
        app = shop(store, reader)

        statuses = [app.post(*body_of("no fields", 0)).status for _ in range(2)]

        assert (reader, statuses, len(app.done)) == (reader, [201, 201], 1)


def test_body_without_its_length_is_refused_once_it_is_gone():
    gone = [{"Content-Length": "5"}, {"Transfer-Encoding": "chunked"}]

    for headers in gone:
        with pytest.raises(request.BodyNotWhole, match="nothing of it is left"):
            request.whole(b"", headers)
    assert request.whole(b"", {"Content-Length": "0"}) == b""
    assert request.whole(b"decompressed", {"Content-Length": "5"}) == b"decompressed"
