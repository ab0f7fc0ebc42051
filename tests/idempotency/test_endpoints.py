"""People's own endpoints, the same in each framework."""

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import flask
import pytest

from hookonce import RedisStore, current_operation, idempotent
from hookonce.receiver.endpoints import stores
from hookonce.receiver.idempotency.records import Key, StoreUnavailable, scope_of
from tests.support.idempotency.applications import APPLICATIONS, DEADLINE, InDjango, InFastAPI, InFlask, Till
from tests.support.idempotency.places import OnPostgres
from tests.support.waiting import until

BODY = '{"amount": 5, "currency": "EUR"}'
KEY = Key(scope_of("pay", "a"), "one")


@pytest.fixture
def place(database_url):
    made = OnPostgres(database_url)
    yield made
    made.close()


@pytest.fixture
def till():
    return Till()


@pytest.fixture(params=APPLICATIONS, ids=lambda each: each.__name__)
def shop(request, place, till):
    """A function: the application with these options."""
    store = place.open()
    return lambda **options: request.param(till, **{"store": store} | options)


def test_request_is_done_once_and_answered_alike(shop, till):
    app = shop()

    first, again, reordered = app.post(BODY), app.post(BODY), app.post('{"currency":"EUR","amount":5.0}')

    assert (first.status, first.json["payment"], first.is_replayed) == (201, 1, False)
    for answer in (again, reordered):
        assert (answer.status, answer.body, answer.is_replayed) == (201, first.body, True)
        assert (answer.headers["location"], answer.headers["content-type"]) == (
            "/payments/1",
            first.headers["content-type"],
        )
    assert len(till.paid) == 1


def test_key_of_another_request_is_refused(shop, till):
    app = shop()
    app.post(BODY)

    answer = app.post('{"amount": 6}')

    assert (answer.status, answer.json["code"]) == (409, "key_reused")
    assert shop(dialect="ietf").post('{"amount": 6}').status == 422
    assert len(till.paid) == 1


@pytest.mark.parametrize(
    ("key", "code"), [(None, "key_missing"), ("", "bad_key"), ("a b", "bad_key"), ("x" * 256, "bad_key")]
)
def test_request_without_a_good_key_is_refused(shop, till, key, code):
    answer = shop().post(BODY, key)

    assert (answer.status, answer.json["code"]) == (400, code)
    assert till.paid == []


def test_key_belongs_to_its_tenant(shop, till):
    app = shop()

    answers = [app.post(BODY, tenant=tenant) for tenant in "abab"]

    assert [answer.json["payment"] for answer in answers] == [1, 2, 1, 2]
    assert len({key for _, key in till.paid}) == 2


def test_chosen_headers_and_the_version_count(shop):
    shop(headers=["Currency"]).post(BODY, Currency="EUR")

    assert shop(headers=["Currency"]).post(BODY, Currency="EUR").is_replayed
    assert shop(headers=["Currency"]).post(BODY, Currency="USD").status == 409
    assert shop(headers=["Currency"], version="2").post(BODY, Currency="EUR").status == 409


@pytest.mark.parametrize("status", [400, 402, 404, 422])
def test_refusal_is_given_again(shop, till, status):
    till.then = [status]
    app = shop()

    first, again = app.post(BODY), app.post(BODY)

    assert (first.status, again.status, again.is_replayed) == (status, status, True)
    assert first.body == again.body
    assert len(till.paid) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_succeed_later_is_tried_again(shop, till, status):
    till.then = [status]
    app = shop()

    first, other, again = app.post(BODY), app.post('{"amount": 6}'), app.post(BODY)

    assert (first.status, other.status, again.status) == (status, 409, 201)
    assert (again.is_replayed, again.json["attempt"]) == (False, 2)
    assert len({key for _, key in till.paid}) == 1


def test_request_is_tried_again_after_an_exception(shop, till):
    till.then = [ArithmeticError("no change")]
    app = shop()
    with contextlib.suppress(ArithmeticError):
        assert app.post(BODY).status == 500

    assert app.post(BODY).json["attempt"] == 2


def under_way(app, till, go_on):
    """Post in a thread, and return its future when it is being paid."""
    till.then = [go_on]
    pool = ThreadPoolExecutor(1)
    future = pool.submit(app.post, BODY)
    pool.shutdown(wait=False)
    until(lambda: len(till.paid), 1)
    return future


@pytest.mark.parametrize(
    ("options", "status"), [({}, 202), ({"in_progress": "409"}, 409), ({"dialect": "ietf"}, 409)]
)
def test_twin_is_told_to_come_back(shop, till, options, status):
    app, go_on = shop(**options), threading.Event()
    first = under_way(app, till, go_on)

    answer = app.post(BODY)
    go_on.set()

    assert (answer.status, answer.is_replayed) == (status, False)
    assert 1 <= int(answer.headers["retry-after"]) <= 5
    assert first.result(DEADLINE).status == 201
    assert app.post(BODY).is_replayed
    assert len(till.paid) == 1


def test_twin_waits_for_the_answer(shop, till):
    app, go_on = shop(in_progress="wait 20s"), threading.Event()
    first = under_way(app, till, go_on)
    with ThreadPoolExecutor(1) as pool:
        twin = pool.submit(app.post, BODY)
        go_on.set()

        assert twin.result(DEADLINE).body == first.result(DEADLINE).body
    assert len(till.paid) == 1


def test_twenty_at_once_have_one_effect_and_one_answer(shop, till):
    app, barrier = shop(in_progress="wait 30s"), threading.Barrier(20)

    def post(_):
        barrier.wait(DEADLINE)
        return app.post(BODY)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(post, range(20)))

    assert {(answer.status, answer.body) for answer in answers} == {(201, answers[0].body)}
    assert sum(not answer.is_replayed for answer in answers) == 1
    assert len(till.paid) == 1


def test_nothing_is_done_while_the_store_is_away(shop, till, place):
    answer = shop(store=place.nowhere()).post(BODY)

    assert (answer.status, answer.json["code"]) == (503, "keys_unavailable")
    assert answer.headers["retry-after"]
    assert till.paid == []


def test_answer_is_given_though_it_can_not_be_stored(shop, place):
    store = place.open()

    def away(*_):
        raise StoreUnavailable("away")

    store.complete = away
    answer = shop(store=store).post(BODY)

    assert (answer.status, answer.json["payment"]) == (201, 1)
    assert shop().post(BODY).status == 202


def test_attempt_that_was_overtaken_gives_the_answer_of_the_other(shop, till, place):
    app, go_on = shop(), threading.Event()
    first = under_way(app, till, go_on)
    place.age(KEY, timedelta(minutes=2))
    second = app.post(BODY)
    go_on.set()

    assert (second.status, second.json["attempt"]) == (201, 2)
    assert first.result(DEADLINE).status == 202
    assert app.post(BODY).body == second.body


def test_key_that_is_not_required_may_be_left_out(shop, till):
    till.pay = lambda amount: (
        till.paid.append(amount),
        (201, {"payment": len(till.paid), "amount": amount, "attempt": 0}),
    )[1]
    app = shop(required=False)

    assert [app.post(BODY, None).json["payment"] for _ in range(2)] == [1, 2]


def test_answer_too_large_to_keep_is_not_given_half(shop, till, place):
    store = place.open()
    store.max_result = 10
    app = shop(store=store)

    first, again = app.post(BODY), app.post(BODY)

    assert (first.status, again.status, again.json["code"]) == (201, 410, "answer_not_kept")
    assert len(till.paid) == 1


def test_cookie_is_not_given_again(place):
    app = flask.Flask("shop")

    @app.post("/")
    @idempotent("sign up", scope=None, store=place.open())
    def sign_up():
        response = flask.make_response("welcome")
        response.set_cookie("session", "secret")
        return response

    with app.test_client(use_cookies=False) as client:
        answers = [client.post("/", headers={"Idempotency-Key": "one"}) for _ in range(2)]

    assert ["Set-Cookie" in answer.headers for answer in answers] == [True, False]
    assert "secret" not in str(place.open().find(Key(scope_of("sign up"), "one")))


@pytest.mark.parametrize("whose", [None, 7, ("a", None)])
def test_scope_that_is_not_text_is_refused(place, whose):
    app = flask.Flask("shop")
    app.testing = True
    app.post("/")(idempotent("pay", scope=lambda _: whose, store=place.open())(lambda: "paid"))

    with pytest.raises(TypeError, match="expected text or a tuple"):
        app.test_client().post("/", headers={"Idempotency-Key": "one"})


@pytest.mark.parametrize("moves_money", [None, True])
def test_store_that_forgets_is_refused_for_what_moves_money(redis_url, moves_money):
    store = RedisStore.at(redis_url)

    with pytest.raises(ValueError, match="Redis forgets what it confirmed"):
        idempotent("pay", scope=None, store=store, moves_money=moves_money)
    idempotent("pay", scope=None, store=store, moves_money=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"in_progress": "403"}, "expected '202', '409' or 'wait 2s'"),
        ({"in_progress": "wait 2"}, "a number with its unit"),
        ({"in_progress": "wait 2m"}, "up to 30s"),
        ({"in_progress": "202", "dialect": "ietf"}, "expected '409'"),
        ({"dialect": "rfc"}, "expected 'hookonce' or 'ietf'"),
        ({"lease": timedelta(days=2)}, "expected a lease"),
    ],
)
def test_options_that_can_not_be_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        idempotent("pay", scope=None, **options)


def test_view_called_without_a_framework_says_what_to_do(place):
    with pytest.raises(TypeError, match="route_class=IdempotentRoute"):
        idempotent("pay", scope=None, store=place.open())(lambda: "paid")()


def test_current_operation_is_only_inside_of_one():
    with pytest.raises(LookupError):
        current_operation()


def test_store_is_the_ledger_unless_another_is_named(database_url, till, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    stores.in_ledger.cache_clear()  # of the tests before
    apps = [kind(till) for kind in (InFlask, InDjango, InFastAPI)]

    answers = [app.post(BODY) for app in apps]

    assert [answer.is_replayed for answer in answers] == [False, True, True]
    assert len(till.paid) == 1
    stores.in_ledger().close()
    stores.in_ledger.cache_clear()


def test_function_is_done_once_under_a_key(place):
    pay, done = idempotent("pay", scope=None, store=place.open()), []
    values = []
    for _ in range(2):
        with pay.operation("one", {"amount": 5}, scope=("a", "ann")) as operation:
            if not operation.is_done:
                done.append(operation.idempotency_key)
                operation.complete({"payment": 7})
            values.append(operation.value)

    assert values == [{"payment": 7}] * 2
    assert len(done) == 1


def test_function_that_raises_may_be_tried_again(place):
    pay = idempotent("pay", scope=None, store=place.open())

    with pytest.raises(ArithmeticError), pay.operation("one", 5):
        raise ArithmeticError

    with pay.operation("one", 5) as operation:
        assert operation.attempt == 2
    with pay.operation("one", 5) as operation:
        assert (operation.is_done, operation.value) == (True, None)
        with pytest.raises(ValueError, match="this operation is done"):
            operation.complete(5)


def test_result_of_a_function_is_json_of_a_size_that_fits(place):
    pay = idempotent("pay", scope=None, store=place.open())

    with pytest.raises(ValueError, match="expected 16777216 at most"), pay.operation("one", 5) as operation:
        operation.complete("x" * 16777216)
    with pay.operation("one", 5) as operation:
        operation.complete(json.loads('{"é": [1.5, null]}'))
        assert operation.value == {"é": [1.5, None]}
