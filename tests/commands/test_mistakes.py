"""Mistakes that commands can be made with: each is planted, and the story must notice."""

import pytest

from hookonce.jobs.attempts import attempt_connection, endings
from hookonce.receiver.commands import answers, endpoint, requests
from hookonce.receiver.config.commands import REFUSAL
from hookonce.receiver.endpoints.policy import Policy
from hookonce.receiver.idempotency.fingerprint import Request
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.commands import CommandState, Outcome
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.store import Stored, Verdict

BODY = {"amount": 5}


def story(shop):
    """A client's day: it asks twice, works with tenants, reuses a key, and is refused."""
    first = shop.ask(BODY)
    assert first.status == 202
    twin = shop.ask(BODY)
    assert (twin.status, twin.is_replayed) == (202, False)
    ordered = [shop.ask(BODY, path="orders", Tenant=tenant, Actor="ann") for tenant in ("a", "b")]
    assert len({answer.headers["Location"] for answer in ordered}) == 2
    assert shop.ask({"amount": 6}).status == 409
    assert shop.ask({"then": "refuse"}, "two").status == 202
    assert shop.ask({"then": "give up"}, "three").status == 202
    shop.work()
    again = [shop.ask(BODY) for _ in range(2)]
    assert [(answer.status, answer.is_replayed) for answer in again] == [(200, True)] * 2
    assert again[0].json == {"paid": 5, "attempt": 1}
    assert shop.ask({"then": "refuse"}, "two").status == 402
    assert shop.ask({"then": "give up"}, "three").status == 422
    assert shop.look(first.headers["Location"]).json["status"] == "completed"
    assert shop.look(first.headers["Location"], "TILL").status == 404
    assert shop.ask(BODY, client="TILL").status == 202
    shop.work()
    assert len(shop.payments) == 4
    assert len(shop.rows("SELECT FROM hookonce.event_states")) == 6


def leaves_tenant_and_actor_out(patch):
    patch.setattr(requests, "scope_of", lambda *parts: "/".join(parts[:3]))


def leaves_the_client_out(patch):
    patch.setattr(requests, "scope_of", lambda what, name, _client, *rest: f"{what} {name} {rest}")


def leaves_the_body_out(patch):
    right = Request.fingerprint
    patch.setattr(Request, "fingerprint", lambda self: right(Request(self.method, self.path)))


def answers_before_the_commit(patch):
    async def commit_in(_, new, _waits):
        return [Stored(0, Verdict.ACCEPTED, each.fingerprint) for each in new]

    patch.setattr(Intake, "commit_in", commit_in)


def makes_a_command_of_each_request(patch):
    right, made = Intake.commit_in, []

    async def commit_in(self, new, waits):
        made.append(1)
        return await right(self, [event._replace(event_id=f"{len(made):064}") for event in new], waits)

    patch.setattr(Intake, "commit_in", commit_in)


def tells_a_twin_that_all_is_done(patch):
    async def became(*_):
        return Outcome(CommandState.COMPLETED, "shop", {})

    patch.setattr(endpoint.Outcomes, "became", became)


def tells_a_twin_of_another_body_the_result(patch):
    patch.setattr(Policy, "reused", lambda self: self.under_way())


def shows_the_state_to_everybody(patch):
    right = endpoint.Outcomes.became

    async def became(self, *asked):
        outcome = await right(self, *asked)
        return outcome and Outcome(outcome.state, "till", outcome.result)

    patch.setattr(endpoint.Outcomes, "became", became)


def keeps_what_a_refused_command_wrote(patch):
    patch.setattr(attempt_connection.AttemptConnection, "reset", lambda _: None)


def gives_refusals_as_results(patch):
    patch.setattr(answers, "REFUSAL", f"not {REFUSAL}")


def gives_up_without_a_word(patch):
    patch.setattr(endings, "verdict", lambda *_: AttemptResult(RunStatus.DONE))


MISTAKES = [
    leaves_tenant_and_actor_out,
    leaves_the_client_out,
    leaves_the_body_out,
    answers_before_the_commit,
    makes_a_command_of_each_request,
    tells_a_twin_that_all_is_done,
    tells_a_twin_of_another_body_the_result,
    shows_the_state_to_everybody,
    keeps_what_a_refused_command_wrote,
    gives_refusals_as_results,
    gives_up_without_a_word,
]


def test_story_is_true(shop):
    story(shop)


@pytest.mark.parametrize("plant", MISTAKES, ids=lambda plant: plant.__name__)
def test_planted_mistake_is_caught_by_the_story(shop, plant):
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)

        with pytest.raises(AssertionError):
            story(shop)
