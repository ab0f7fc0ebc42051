"""`quota` of a command: so many new keys of a client, however many ask at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from hookonce.receiver.app import create_app
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from tests.support.commands import DEADLINE

BODY = {"amount": 5}


def at_once(shop, keys):
    barrier = threading.Barrier(len(keys))

    def ask(key):
        barrier.wait(DEADLINE)
        return shop.ask(BODY, key)

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(ask, keys))


def test_no_more_new_keys_than_the_quota_pass_at_once(open_shop):
    shop = open_shop('quota = "5/d"')

    statuses = [answer.status for answer in at_once(shop, [f"key-{n}" for n in range(40)])]

    assert sorted(statuses) == [202] * 5 + [429] * 35
    assert len(shop.rows("SELECT FROM hookonce.event_states")) == 5


def test_twins_at_once_need_one_place(open_shop):
    shop = open_shop('quota = "2/d"')

    twins = [answer.status for answer in at_once(shop, ["one"] * 10)]
    others = [shop.ask(BODY, key).status for key in ("two", "three", "one")]

    assert (set(twins), others) == ({202}, [202, 429, 202])


def test_key_that_is_known_or_refused_uses_no_place(open_shop):
    shop = open_shop('quota = "2/d"')
    shop.ask(BODY, "one")

    known = [shop.ask(BODY, "one").status for _ in range(5)]
    reused = [shop.ask({"amount": 6}, "one").status for _ in range(5)]
    shop.ask("{", "broken")

    assert (known, reused) == ([202] * 5, [409] * 5)
    assert [shop.ask(BODY, key).status for key in ("two", "three", "three")] == [202, 429, 429]
    assert [shop.ask({"amount": 6}, "two").status, shop.ask(BODY, "one").status] == [409, 202]


def test_command_that_could_not_be_stored_uses_no_place(open_shop, monkeypatch):
    shop = open_shop('quota = "1/d"')
    intake = shop.app.extensions["hookonce"]

    def away(_):
        raise LedgerUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(intake, "commit", away)
        failed = [shop.ask(BODY, f"key-{n}").status for n in range(3)]

    assert failed == [503] * 3
    assert [shop.ask(BODY, key).status for key in ("key-0", "key-1")] == [202, 429]


def test_quota_holds_at_once_while_redis_is_away(open_shop):
    shop = open_shop('quota = "5/d"')
    here = shop.app
    shop.app = create_app(replace(shop.settings, redis_url="redis://127.0.0.1:1"))

    statuses = [answer.status for answer in at_once(shop, [f"key-{n}" for n in range(20)])]
    shop.app.extensions["hookonce_commands"].outcomes.close()
    shop.app.extensions["hookonce"].close()
    shop.app = here

    assert 1 <= statuses.count(202) <= 5
    assert set(statuses) == {202, 429}
