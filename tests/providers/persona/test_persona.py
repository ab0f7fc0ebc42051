from dataclasses import replace
from datetime import timedelta

from hookonce.providers import Reason
from tests.support.senders import NOW, reason_of, sent


def test_persona_takes_any_group_that_is_right():
    provider, delivery = sent("persona", {"data": {"id": "e"}})
    right = delivery.headers["persona-signature"]
    wrong = f"t=1,v1={'0' * 64}"

    for header in (f"{wrong} {right}", f"{right} {wrong}", f"{wrong} {right} {wrong}"):
        assert reason_of(provider, replace(delivery, headers={"persona-signature": header})) is None
    assert (
        reason_of(provider, replace(delivery, headers={"persona-signature": f"{wrong} {wrong}"}))
        == Reason.BAD_SIGNATURE
    )


def test_persona_group_that_is_right_and_late_is_stale():
    provider, delivery = sent("persona", {"data": {"id": "e"}}, now=NOW - timedelta(hours=1))

    assert reason_of(provider, delivery) == Reason.STALE
