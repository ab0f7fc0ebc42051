"""Mistakes that such a machine can be made with: each is planted, and its check must notice."""

import time
from dataclasses import replace
from uuid import uuid4

import pytest

from hookonce.receiver.idempotency import operation, postgresql, redis_hash
from hookonce.receiver.idempotency.records import Claim, StoreUnavailable, verdict
from tests.support import rewording
from tests.support.idempotency import checks
from tests.support.idempotency.places import OnDynamo, OnPostgres, OnRedis

NOT_DUE = "AND i.lease_until <= statement_timestamp()"


def reword(module, *changes, within=""):
    return lambda patch: rewording.reword(patch, module, *changes, within=within)


def leaves_the_tenant_out(patch):
    patch.setattr(checks, "scope_of", lambda *parts: parts[0])


def joins_the_scope_without_saying_where_parts_end(patch):
    patch.setattr(checks, "scope_of", lambda *parts: "".join(parts))


def works_without_its_store(patch):
    def begin(store, key, fingerprint, terms):
        try:
            return right(store, key, fingerprint, terms)
        except StoreUnavailable:
            return Claim(key, fingerprint, uuid4(), terms)

    right = operation.begin
    patch.setattr(operation, "begin", begin)


def asks_once(patch):
    patch.setattr(operation, "twice", lambda ask: ask())


def is_somebody_else_when_it_asks_again(patch):
    def ask_again(ask):
        try:
            return ask()
        except StoreUnavailable:
            patch.setattr(checks.LosesReplies, "claim", renamed, raising=False)
            return ask()

    def renamed(self, wanted):
        return self._store.claim(replace(wanted, owner=uuid4()))

    patch.setattr(operation, "twice", ask_again)


def dynamo(name, plant):
    """A mistake in the store on DynamoDB, whose module needs its extra."""

    def planted(patch):
        plant(patch, pytest.importorskip("hookonce.receiver.idempotency.dynamodb"))

    planted.__name__ = name
    return planted


def puts_on(condition):
    def plant(patch, module):
        def wins(self, operation, **parameters):
            if parameters["ConditionExpression"].startswith(condition) and operation == "put_item":
                parameters = {"Item": parameters["Item"]}
            return right(self, operation, **parameters)

        right = module.DynamoStore._wins  # noqa: SLF001  what is changed
        patch.setattr(module.DynamoStore, "_wins", wins)

    return plant


def takes_over_what_was_taken_over(patch, module):
    def find(self, key):
        found = right(self, key)
        time.sleep(0.2)  # all have looked before the first of them writes
        return found

    right = module.DynamoStore.find
    patch.setattr(module.DynamoStore, "find", find)
    puts_on("#owner")(patch, module)


def ends_whoever_asks(patch, module):
    whoever = "attribute_exists(#owner) AND #state = :in_progress AND :owner = :owner"
    rewording.reword(patch, module, ("#owner = :owner AND #state = :in_progress", whoever))


def goes_by_its_own_clock(patch, module):
    patch.setattr(module.DynamoStore, "_now", lambda *_, **__: time.time())


MISTAKES = {
    "stores a result over a newer claim": (
        OnPostgres,
        reword(postgresql, ("AND owner = %(owner)s", ""), within="SET state"),
        checks.refuses_the_late_end_of_a_claim_that_was_taken_over,
    ),
    "stores a result over a result": (
        OnPostgres,
        reword(postgresql, ("AND owner = %(owner)s AND state = 'in_progress'", ""), within="SET state"),
        checks.refuses_the_end_of_whoever_is_not_the_owner,
    ),
    "claims without a lease": (
        OnPostgres,
        reword(postgresql, (NOT_DUE, "")),
        checks.waits_for_a_dead_claim_and_then_takes_it_over,
    ),
    "never takes over": (
        OnPostgres,
        reword(postgresql, (NOT_DUE, "AND false")),
        checks.waits_for_a_dead_claim_and_then_takes_it_over,
    ),
    "claims whatever is there": (
        OnPostgres,
        reword(postgresql, ("i.fingerprint = excluded.fingerprint", "true OR true")),
        checks.lets_one_of_twenty_work_and_answers_all,
    ),
    "forgets the doubt": (
        OnPostgres,
        reword(postgresql, ("ELSE i.is_uncertain OR i.state = 'in_progress'", "ELSE false")),
        checks.recovers_an_effect_that_nobody_wrote_down,
    ),
    "releases the claims of others": (
        OnPostgres,
        reword(postgresql, ("AND owner = %(owner)s", ""), within="DELETE"),
        checks.refuses_the_end_of_whoever_is_not_the_owner,
    ),
    "never forgets": (
        OnPostgres,
        reword(
            postgresql,
            ("i.expires_at <= statement_timestamp()", "false"),
            ("expires_at <= statement_timestamp()", "false"),
        ),
        checks.forgets_after_the_retention,
    ),
    "frees the key of a failure for everybody": (
        OnPostgres,
        lambda patch: patch.setattr(operation, "fail_for_now", lambda store, claim: store.release(claim)),
        checks.tries_again_after_a_failure_for_now,
    ),
    "frees the key of what may have been done": (
        OnPostgres,
        lambda patch: patch.setattr(operation, "abandon", lambda store, claim: store.release(claim)),
        checks.remembers_doubt_until_the_end,
    ),
    "leaves the tenant out": (OnPostgres, leaves_the_tenant_out, checks.keeps_scopes_apart),
    "joins the scope": (
        OnRedis,
        joins_the_scope_without_saying_where_parts_end,
        checks.keeps_scopes_apart,
    ),
    "works without its store": (OnRedis, works_without_its_store, checks.does_nothing_without_its_server),
    "asks once": (OnRedis, asks_once, checks.survives_replies_that_are_lost),
    "is somebody else when it asks again": (
        OnRedis,
        is_somebody_else_when_it_asks_again,
        checks.survives_replies_that_are_lost,
    ),
    "stores a result over a newer claim in Redis": (
        OnRedis,
        reword(redis_hash, ("if old.owner ~= ARGV[1] then return 0 end", "")),
        checks.refuses_the_late_end_of_a_claim_that_was_taken_over,
    ),
    "makes a record of what is gone": (
        OnRedis,
        reword(
            redis_hash,
            ("if old.owner ~= ARGV[1]", "if old.owner and old.owner ~= ARGV[1]"),
            ("if old.state ~=", "if old.state and old.state ~="),
        ),
        checks.refuses_the_end_of_a_claim_that_is_gone,
    ),
    "claims in Redis without a lease": (
        OnRedis,
        reword(redis_hash, ("and not running))", "))")),
        checks.waits_for_a_dead_claim_and_then_takes_it_over,
    ),
    "gives one answer to all requests": (
        OnRedis,
        lambda patch: patch.setattr(operation, "verdict", lambda record, _: right_verdict(record)),
        checks.refuses_another_request_under_the_key,
    ),
    "puts whatever is there": (
        OnDynamo,
        dynamo("puts", puts_on("attribute_not_exists")),
        checks.lets_one_of_twenty_work_and_answers_all,
    ),
    "takes over what was taken over": (
        OnDynamo,
        dynamo("takes", takes_over_what_was_taken_over),
        checks.lets_one_of_twenty_take_over,
    ),
    "ends whoever asks": (
        OnDynamo,
        dynamo("ends", ends_whoever_asks),
        checks.refuses_the_late_end_of_a_claim_that_was_taken_over,
    ),
    "goes by its own clock": (
        OnDynamo,
        dynamo("clock", goes_by_its_own_clock),
        checks.goes_by_the_clock_of_its_server,
    ),
}


def right_verdict(record):
    return verdict(record, record.fingerprint if record else b"")


@pytest.fixture
def place_of(request):
    """A function: the place of a kind."""
    made = []

    def make(kind):
        name = {OnPostgres: "database_url", OnRedis: "redis_url", OnDynamo: "dynamo_endpoint"}[kind]
        made.append(kind(request.getfixturevalue(name)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistake_is_caught_by_its_check(place_of, name):
    kind, plant, check = MISTAKES[name]
    place = place_of(kind)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)

        with pytest.raises((AssertionError, pytest.fail.Exception, *REFUSALS)):
            check(place)


REFUSALS = (checks.InProgress, checks.KeyReused, checks.LeaseLost, StoreUnavailable)
"""What a check meets where it expects an answer."""
