from datetime import timedelta

import pytest

from hookonce import on

AWAITS = {"refund": ("stripe", "charge.refunded", "$.data.object.payment_intent")}
DAYS = timedelta(days=3)


@pytest.fixture
def paid(bench):
    """A delivery whose handler waits for a refund of it."""

    @on("stripe", "charge.succeeded", name="shop.pay", awaits=AWAITS)
    def pay(event, _):
        found = event.wait("refund", event.data["data"]["object"]["payment_intent"], timeout=DAYS)
        return {"refunded": found and found["type"]}

    return bench.deliver("stripe", "charge.succeeded", set={"data.object.payment_intent": "pi_1"})


def result(paid):
    (run,) = [run for run in paid.detail.runs if run.handler == "shop.pay"]
    return run.result


def test_delivery_wakes_the_handler_that_waits_for_it(bench, paid):
    assert result(paid) is None

    bench.deliver("stripe", "charge.refunded", set={"data.object.payment_intent": "pi_1"})

    assert result(paid) == {"refunded": "charge.refunded"}


def test_time_that_is_moved_ends_a_wait(bench, paid):
    bench.clock.advance(DAYS - timedelta(hours=1))
    bench.work()
    assert result(paid) is None

    bench.clock.advance(timedelta(hours=2))
    bench.work()
    assert result(paid) == {"refunded": None}


def test_chosen_handlers_have_what_they_wait_for_noted(bench):
    @on("stripe", "charge.succeeded", name="shop.pay", awaits=AWAITS)
    def pay(event, _):
        return event.wait("refund", "pi_1", timeout=DAYS)["id"]

    bench.use(pay)
    refund = bench.deliver("stripe", "charge.refunded", set={"data.object.payment_intent": "pi_1"})
    paid = bench.deliver("stripe", "charge.succeeded")

    assert result(paid) == refund.event_id
