"""The table of states for commands: what a client is told of each, with the same request and with another."""

import pytest

from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow

AGAIN, OTHER = "the same", "another"
DIED = "UPDATE hookonce.claims SET lease_until = now() - interval '1 s'"
FORGOTTEN = "DELETE FROM hookonce.queue; DELETE FROM hookonce.runs; DELETE FROM hookonce.events"

# What the command is, how it came to be so, which request comes; the answer, and how many payments there are then.
TABLE = [
    ("absent", None, AGAIN, (202, None), 1),
    ("in progress", "running", AGAIN, (202, None), 1),
    ("in progress", "running", OTHER, (409, "key_reused"), 1),
    ("its worker died", "died", AGAIN, (202, None), 1),
    ("its worker died", "died", OTHER, (409, "key_reused"), 1),
    ("completed", "done", AGAIN, (200, None), 1),
    ("completed", "done", OTHER, (409, "key_reused"), 1),
    ("failed for good", "give up", AGAIN, (422, "failed"), 0),
    ("failed for good", "give up", OTHER, (409, "key_reused"), 0),
    ("failed for now", "fail once", AGAIN, (503, "failed_retryable"), 1),
    ("failed for now", "fail once", OTHER, (409, "key_reused"), 1),
    ("forgotten", "forgotten", AGAIN, (202, None), 2),
]


@pytest.mark.parametrize(("is_now", "how", "asked", "told", "payments"), TABLE)
def test_client_is_told_by_the_table(shop, is_now, how, asked, told, payments):
    body = {"amount": 5, "then": how}
    bring_about(shop, how, body)

    answer = shop.ask(body if asked == AGAIN else {"amount": 6})

    assert (answer.status, answer.json.get("code")) == told, is_now
    assert answer.is_replayed == (answer.status in {200, 422})
    if how == "running":
        shop.ledger.execute(DIED)
    for _ in range(2):
        shop.work()
    assert len(shop.payments) == payments


def bring_about(shop, how, body):
    if how is None:
        return
    shop.ask(body)
    if how in {"running", "died"}:
        claim_and_die(shop)
        if how == "died":
            shop.ledger.execute(DIED)
        return
    shop.work_once()
    if how == "forgotten":
        shop.ledger.execute(FORGOTTEN)
        with connect(
            shop.settings.redis_url
        ) as window:  # which remembers for an hour, and the ledger for days
            DedupWindow(window, CircuitBreaker()).forget()


def claim_and_die(shop):
    """Have a worker claim the run, and never be heard of again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(shop._drain), "_run_claimed", lambda *_: 0)  # noqa: SLF001
        shop.work_once()


def test_table_has_its_twelve_rows():
    assert len({(is_now, asked) for is_now, _, asked, *_ in TABLE}) == 12
