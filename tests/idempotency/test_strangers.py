"""A client is let in, then its key is claimed: whatever the door, a stranger gets no answer and leaves no row."""

import types

import pytest
from django.http import HttpResponseRedirect
from django.test import RequestFactory

from hookonce import idempotent
from tests.support.idempotency.applications import configure_django
from tests.support.idempotency.doors import INSIDE, OUTSIDE, OWNER, OfFastAPI

STRANGERS = [{}, {"Authorization": "Bearer stranger"}]
BODY = {"amount": 5}


@pytest.fixture
def keys(connection):
    return lambda: connection.execute("SELECT key FROM hookonce.idempotency").fetchall()


def story(door, keys):
    """A stranger is refused before the owner, and after it; return what went wrong."""
    wrong = []
    for headers in STRANGERS:
        for body in (BODY, {"amount": 6}):
            status = door.post(body, headers).status
            wrong += [] if status in {401, 403} else [f"the stranger who was first got {status}"]
    wrong += [f"a stranger left {key}" for key in keys()]
    first, again = door.post(BODY, OWNER), door.post(BODY, OWNER)
    if (first.status, again.status, first.is_replayed, again.is_replayed) != (201, 201, False, True):
        wrong.append(f"the owner got {first.status} and {again.status}")
    return wrong if door.paid == [5] else [*wrong, f"paid: {door.paid}"]


def test_stranger_before_every_kind_of_door_gets_nothing_and_leaves_no_row(store, keys, connection):
    wrong = []
    for application, kind in OUTSIDE:
        connection.execute("DELETE FROM hookonce.idempotency")
        door = application(store, [], kind)
        found = story(door, keys)
        late = [door.post(BODY, headers).status for headers in STRANGERS]
        found += [f"the late stranger got {status}" for status in late if status not in {401, 403}]
        wrong += [f"{application.__name__}.{kind}: {each}" for each in found]

    assert wrong == []


def test_stranger_whom_the_endpoint_refuses_gives_the_key_back(store, keys, connection):
    wrong = []
    for application, kind in INSIDE:
        connection.execute("DELETE FROM hookonce.idempotency")
        found = story(application(store, [], kind), keys)
        wrong += [f"{application.__name__}.{kind}: {each}" for each in found]

    assert wrong == []


def test_stranger_that_is_sent_to_sign_in_leaves_no_row(store, keys):
    configure_django()
    once = idempotent("pay", scope=lambda request: str(request.user.pk), store=store)

    def view(request):
        to_sign_in = HttpResponseRedirect("/accounts/login/?next=/pay")
        return HttpResponseRedirect("/receipt") if request.user.is_authenticated else to_sign_in

    def ask(user):
        request = RequestFactory().post("/pay", {"amount": 5}, headers={"Idempotency-Key": "one"})
        request.user = user
        return once(view)(request)

    stranger = types.SimpleNamespace(pk=None, is_authenticated=False)
    owner = types.SimpleNamespace(pk=7, is_authenticated=True)
    sent_away = ask(stranger)
    after_it = keys()
    paid = [ask(owner) for _ in range(2)]

    assert (sent_away.status_code, sent_away["Location"][:16], after_it) == (302, "/accounts/login/", [])
    assert [(each.status_code, "Idempotency-Replayed" in each) for each in paid] == [
        (302, False),
        (302, True),
    ]


def test_body_that_fastapi_refuses_leaves_its_key_free(store, keys):
    door = OfFastAPI(store, [], "dependency_of_the_route")

    refused, after_it = door.post({"amount": "much"}, OWNER), keys()

    assert (refused.status, after_it) == (422, [])
    assert door.post(BODY, OWNER).status == 201
