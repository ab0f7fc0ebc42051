"""Which claims of a process are renewed, forgotten or left to a takeover."""

import uuid

from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun

EVENT = ClaimedEvent(*[None] * len(ClaimedEvent._fields))


def runs(count, token=None):
    token = token or uuid.uuid4()
    return [
        ClaimedRun(EVENT._replace(id=number), 0, "h", attempt=1, cycle=1, token=token)
        for number in range(count)
    ]


def test_claim_is_held_until_each_of_its_runs_is_settled_however_often():
    held, (first, last) = OwnClaims(), runs(2)
    held.add([first, last])
    held.over([first])
    held.over([first])

    assert (held.tokens, held.take_finished(), held.holds(last)) == ([first.token], [], True)

    held.over([last])
    assert (held.tokens, held.take_finished(), held.take_finished()) == ([], [first.token], [])


def test_claim_that_was_dropped_is_not_forgotten_by_us():
    held, claimed = OwnClaims(), runs(2)
    held.add(claimed)
    held.drop([claimed[0].token])
    held.over(claimed)

    assert (held.tokens, held.take_finished(), held.holds(claimed[0])) == ([], [], False)


def test_claim_with_a_run_that_is_left_in_it_is_not_forgotten_by_us():
    held, claimed = OwnClaims(), runs(2)
    held.add(claimed)
    held.leave(claimed[:1])
    held.over(claimed)

    assert (held.tokens, held.take_finished()) == ([], [])


def test_claims_that_were_not_forgotten_are_given_again():
    held, claimed = OwnClaims(), runs(1)
    held.add(claimed)
    held.over(claimed)
    held.give_back_finished(held.take_finished())

    assert held.take_finished() == [claimed[0].token]
