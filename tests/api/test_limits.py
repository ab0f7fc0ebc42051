"""How many requests of a token the API takes: one token's limit is no other's."""

from dataclasses import replace
from datetime import timedelta

import pytest

from hookonce.receiver.app import create_app
from hookonce.receiver.config.admin import Admin
from hookonce.receiver.source import Limit


@pytest.fixture
def limited(inbox):
    app = create_app(
        replace(
            inbox.settings,
            admin=Admin(token_rate=Limit(3, timedelta(hours=1)), token_quota=Limit(100, timedelta(days=1))),
        )
    )
    inbox.app, before = app, inbox.app
    yield inbox
    app.extensions["hookonce"].close()
    inbox.app = before


def test_token_that_asks_too_often_is_told_when_to_come_again(limited):
    answers = [limited.ask("GET", "/events", scope="read") for _ in range(5)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].json["code"] == "too_many_requests"
    assert 1100 < int(answers[-1].headers["Retry-After"]) <= 1201


def test_tokens_limit_takes_nothing_from_another(limited):
    for _ in range(5):
        limited.ask("GET", "/events", scope="read")

    assert limited.ask("GET", "/events", scope="admin").status_code == 200


def test_wrong_token_uses_up_nobodys_limit(limited):
    limited.tokens["wrong"] = limited.tokens["read"][:-1] + "x"

    wrong = {limited.ask("GET", "/events", scope="wrong").status_code for _ in range(9)}

    assert wrong == {401}
    assert limited.ask("GET", "/events", scope="read").status_code == 200


def test_key_that_was_answered_is_replayed_as_ever(limited):
    first, again = (
        limited.ask("POST", "/window/forget", headers={"Idempotency-Key": "one"}) for _ in range(2)
    )

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.headers["Idempotency-Replayed"] == "true"
