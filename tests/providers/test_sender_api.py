"""What senders' APIs answer, as their vendors publish it, is read; what is asked of them is as they document it."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hookonce.providers.kit.calls import Account, Answer, CallFailed, Subscription, Wanted
from hookonce.providers.kit.crypto import jws
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# https://docs.github.com/en/rest/repos/webhooks#list-deliveries-for-a-repository-webhook, its example response
GITHUB = [
    {
        "id": 12345678,
        "guid": "0b989ba4-242f-11e5-81e1-c7b6966d2516",
        "delivered_at": "2019-06-03T00:57:16Z",
        "redelivery": False,
        "duration": 0.27,
        "status": "OK",
        "status_code": 200,
        "event": "issues",
        "action": "opened",
        "installation_id": 123,
        "repository_id": 456,
    },
    {
        "id": 123456789,
        "guid": "0b989ba4-242f-11e5-81e1-c7b6966d2516",
        "delivered_at": "2019-06-04T00:57:16Z",
        "redelivery": True,
        "duration": 0.28,
        "status": "OK",
        "status_code": 200,
        "event": "issues",
        "action": "opened",
        "installation_id": 123,
        "repository_id": 456,
    },
]
# https://docs.stripe.com/api/events/list, its example response, without the object's own fields
STRIPE = {
    "object": "list",
    "url": "/v1/events",
    "has_more": False,
    "data": [
        {
            "id": "evt_1NG8Du2eZvKYlo2CUI79vXWy",
            "object": "event",
            "api_version": "2019-02-19",
            "created": 1686089970,
            "data": {"object": {"id": "seti_1NG8Du2eZvKYlo2C9XMqbR0x", "object": "setup_intent"}},
            "livemode": False,
            "pending_webhooks": 0,
            "request": {"id": None, "idempotency_key": None},
            "type": "setup_intent.created",
        }
    ],
}
# https://learn.microsoft.com/en-us/graph/api/subscription-update, its example response
GRAPH = {
    "id": "7f105c7d-2dc5-4530-97cd-4e7ae6534c07",
    "resource": "me/messages",
    "applicationId": "24d3b144-21ae-4080-943f-7067b395b913",
    "changeType": "created,updated",
    "clientState": "subscription-identifier",
    "notificationUrl": "https://webhook.azurewebsites.net/api/send/myNotifyClient",
    "expirationDateTime": "2016-11-22T18:23:45.9356913Z",
    "creatorId": "8ee44408-0679-472c-bc2a-692812af3437",
}
# https://developers.google.com/workspace/calendar/api/guides/push, its example response
GOOGLE = {
    "kind": "api#channel",
    "id": "01234567-89ab-cdef-0123456789ab",
    "resourceId": "o3hgv1538sdjfh",
    "resourceUri": "https://www.googleapis.com/calendar/v3/calendars/my_calendar@gmail.com/events",
    "token": "target=myApp-myCalendarChannelDest",
    "expiration": 1426325213000,
}
CALENDAR = "https://www.googleapis.com/calendar/v3/calendars/my_calendar@gmail.com/events/watch"
WANTED = Wanted(CALENDAR, "created", "https://mydomain.com/notifications", "s", timedelta(days=7))


def answer(document, status=200, **headers):
    return Answer(status, headers, json.dumps(document).encode())


def test_deliveries_that_github_lists_are_read():
    link = (
        '<https://api.github.com/repositories/1/hooks/2/deliveries?per_page=100&cursor=v1_123>; rel="next", '
        '<https://api.github.com/repositories/1/hooks/2/deliveries?per_page=100&cursor=v1_9>; rel="prev"'
    )

    page = load("github").listing.read(answer(GITHUB, link=link))

    assert page.cursor == "v1_123"
    assert [(each.id, each.type, each.reference, each.is_first) for each in page.listed] == [
        ("0b989ba4-242f-11e5-81e1-c7b6966d2516", "issues", "12345678", True),
        ("0b989ba4-242f-11e5-81e1-c7b6966d2516", "issues", "123456789", False),
    ]
    assert page.listed[0].at == datetime(2019, 6, 3, 0, 57, 16, tzinfo=UTC)


@pytest.mark.parametrize("hook", ["repos/octocat/Hello-World/hooks/1", "orgs/octocat/hooks/1", "app/hook"])
def test_github_is_asked_at_the_address_of_the_hook(hook):
    listing = load("github").listing
    account = Account(f"https://api.github.com/{hook}", "token")

    listed, again = listing.missed(account, "v1_123", NOW), listing.redeliver(account, "12345678")

    assert (listed.method, urlsplit(listed.url).path) == ("GET", f"/{hook}/deliveries")
    assert parse_qs(urlsplit(listed.url).query) == {"per_page": ["100"], "cursor": ["v1_123"]}
    assert (again.method, urlsplit(again.url).path) == ("POST", f"/{hook}/deliveries/12345678/attempts")
    assert "token" not in repr(listed)


def test_app_of_github_proves_itself_with_a_token_of_its_key(rsa_key):
    token = load("github").listing.token(
        json.dumps({"client_id": "Iv1.8a61f9b3a7aba766", "pem": rsa_key}), NOW
    )

    claims = jws.read(token, "it").claims
    assert claims == {
        "iat": NOW.timestamp() - 60,
        "exp": NOW.timestamp() + 540,
        "iss": "Iv1.8a61f9b3a7aba766",
    }


def test_events_that_stripe_lists_are_read_as_its_deliveries():
    stripe = load("stripe")

    [listed] = stripe.listing.read(answer(STRIPE)).listed

    assert (listed.id, listed.type) == ("evt_1NG8Du2eZvKYlo2CUI79vXWy", "setup_intent.created")
    assert json.loads(listed.body) == STRIPE["data"][0]


def test_stripe_is_asked_for_what_was_not_delivered():
    request = load("stripe").listing.missed(Account("", "rk_test"), "evt_1", NOW)

    asked = parse_qs(urlsplit(request.url).query)
    assert asked["delivery_success"] == ["false"]
    assert asked["created[gte]"] == [str(int(NOW.timestamp()))]
    assert asked["starting_after"] == ["evt_1"]


def test_subscription_of_graph_is_read_and_renewed():
    renewal = load("microsoft_graph").renewal

    known = renewal.read(answer(GRAPH))
    request = renewal.renew(WANTED, known, "token", NOW)

    assert known.expires_at == datetime(2016, 11, 22, 18, 23, 45, 935691, tzinfo=UTC)
    assert request.method == "PATCH"
    assert request.url == f"https://graph.microsoft.com/v1.0/subscriptions/{GRAPH['id']}"
    assert json.loads(request.body) == {"expirationDateTime": "2026-01-08T00:00:00Z"}


def test_channel_of_google_is_read_and_stopped():
    renewal = load("google_drive").renewal

    known = renewal.read(answer(GOOGLE))
    stop = renewal.end(WANTED, known, "token")

    assert known == Subscription(GOOGLE["id"], datetime(2015, 3, 14, 9, 26, 53, tzinfo=UTC), "o3hgv1538sdjfh")
    assert stop.url == "https://www.googleapis.com/calendar/v3/channels/stop"
    assert json.loads(stop.body) == {"id": GOOGLE["id"], "resourceId": "o3hgv1538sdjfh"}


WAYS = {"github": "listing", "stripe": "listing", "microsoft_graph": "renewal", "google_drive": "renewal"}
JUNK = (b"", b"null", b"[]", b"{}", b"[1]", b'{"data": [1]}', b"[[]]", b"\xff", b"[" * 10_000, b'{"id": []}')
STATUSES = (200, 302, 401, 403, 404, 429, 500)


@pytest.mark.parametrize("name", WAYS)
def test_answer_of_no_use_fails_in_one_line(name):
    way = getattr(load(name), WAYS[name])
    told = set()

    for status in STATUSES:
        for body in JUNK if status != 200 or name != "github" else JUNK[3:]:
            with pytest.raises(CallFailed) as raised:
                way.read(Answer(status, {}, body))
            told.add(str(raised.value))

    assert len(told) > len(STATUSES) - 1
    assert not any("\n" in each for each in told)


@pytest.fixture(scope="module")
def rsa_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()
