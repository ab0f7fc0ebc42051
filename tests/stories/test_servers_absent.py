"""Servers that are not there when hookonce starts, and a Redis that goes between any two steps."""

import pytest
import redis

from hookonce.receiver import failpoints
from hookonce.receiver.app import create_app
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.ledger.database import migrate
from tests.support.inbox import effect, inbox
from tests.support.stories.plans import SECRET
from tests.support.stories.sending import stripe
from tests.support.stories.stack import Stack, running, until

__all__ = ["inbox"]

MOST = 60


def test_stack_that_is_started_before_its_servers_works_once_they_are_there(data_directory, tmp_path):
    postgres, valkey = Postgres.start(data_directory, durable=False), Valkey.start(data_directory)
    migrate.upgrade(postgres.url)
    stack = Stack(tmp_path, postgres.url, valkey.url, web=1, workers=1).make_effects()
    valkey.kill()
    postgres.kill()
    with running(stack):
        early = stack.event()
        until(lambda: stack.deliver(early).status, 503, what="a refusal")
        postgres.restart()
        stack.insist(early.again())
        stack.rest()
        valkey.restart()
        with redis.Redis.from_url(valkey.url) as client:
            until(lambda: stack.insist(stack.event()) and client.keys("hookonce:*"), what="the use of Redis")
        violations = stack.violations()
    valkey.stop()
    postgres.stop()

    assert violations == []


def flushed(client):
    client.flushall()


def filled(client):
    client.config_set("maxmemory", 1)


def spoilt(client):
    for key in client.scan_iter():
        client.delete(key)
        client.hset(key, "spoilt", "yes")


@pytest.fixture
def own_redis(data_directory):
    server = Valkey.start(data_directory)
    with redis.Redis.from_url(server.url) as client:
        yield server.url, client
    server.stop()


@pytest.mark.parametrize("befall", [flushed, filled, spoilt])
def test_nothing_is_lost_or_doubled_when_redis_is_struck_between_any_two_steps(
    inbox, own_redis, monkeypatch, befall
):
    url, client = own_redis
    inbox.on(effect)
    app = create_app(settings_for(inbox, url))
    monkeypatch.setattr(inbox, "settings", settings_for(inbox, url))
    met = [strike_at(k, app, inbox, client, befall, monkeypatch) for k in range(1, MOST)]
    app.extensions["hookonce"].close()

    sent = sorted(f"evt_{k}" for k in range(1, MOST))
    assert sorted(inbox.effects()) == sent
    assert max(met) < MOST


def settings_for(inbox, url):
    return load_settings(
        {
            "DATABASE_URL": inbox.settings.database_url,
            "REDIS_URL": url,
            "HOOKONCE_CONFIG": "/dev/null",
            "HOOKONCE_SECRET__STRIPE": SECRET,
        }
    )


def strike_at(k, app, inbox, client, befall, monkeypatch):
    """Deliver an event and its retry and work, with Redis struck at the k-th step; count the steps."""
    met = []

    def step(name):
        met.append(name)
        if len(met) == k:
            befall(client)

    message = stripe(f"evt_{k}")
    monkeypatch.setattr(failpoints, "counter", step)
    answers = [post(app, message), post(app, message.again())]
    inbox.work()
    answers.append(post(app, message.again()))
    monkeypatch.setattr(failpoints, "counter", None)
    client.config_set("maxmemory", 0)
    inbox.work()
    assert answers == [(200, "accepted"), (200, "duplicate"), (200, "duplicate")]
    return len(met)


def post(app, message):
    answer = app.test_client().post("/hooks/stripe", data=message.body, headers=message.signed())
    return answer.status_code, answer.json["status"]
