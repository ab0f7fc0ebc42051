"""What each sender wants to be answered, over HTTP: to what is accepted, comes again, is forged."""

from dataclasses import replace
from functools import cache

from hookonce.providers import Delivery, Reason, Reply
from tests.support.captured import captured, captured_as, captured_of
from tests.support.for_each import for_each

OURS = {Reason.NO_SECRET: 503, Reason.TOO_LARGE: 413}
ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'
    '<soapenv:Body><notificationsResponse xmlns="http://soap.sforce.com/2005/09/outbound"><Ack>true</Ack>'
    "</notificationsResponse></soapenv:Body></soapenv:Envelope>"
)
WANTED = {
    "adobe_sign": (200, "application/json", '{"xAdobeSignClientId": "CBJCHBCAABAAo8FPM8kB5"}'),
    "adyen": (200, "text/plain; charset=utf-8", "[accepted]"),
    "alipay": (
        200,
        "application/json",
        '{"result": {"resultCode": "SUCCESS", "resultStatus": "S", "resultMessage": "success"}}',
    ),
    "discord": (204, "text/plain; charset=utf-8", ""),
    "dropbox_sign": (200, "text/plain; charset=utf-8", "Hello API Event Received"),
    "fitbit": (204, "text/plain; charset=utf-8", ""),
    "microsoft_teams_outgoing": (200, "application/json", '{"type":"message","text":"Received."}'),
    "salesforce": (200, "text/xml", ENVELOPE),
    "supabase_auth_hooks": (200, "application/json", "{}"),
    "twilio": (200, "text/xml; charset=utf-8", "<Response/>"),
    "xero": (200, "text/plain; charset=utf-8", ""),
}
WANTED_OF_SOME = {"slack/button": (200, "text/plain; charset=utf-8", "")}
STATUSES = {"mailgun": 406, "xero": 401}


@cache
def genuine():
    """A genuine delivery of each sender; a sender whose keys are fetched has none here."""
    return {str(case).partition("/")[0]: case for case in captured() if case.is_genuine and not case.keys}


def picky():
    return {name: case for name, case in genuine().items() if case.provider.statuses}


def with_a_fixed_reply():
    return {name: case for name, case in genuine().items() if isinstance(case.provider.accepted, Reply)}


def made():
    return {name for name, case in genuine().items() if callable(case.provider.accepted)}


def take(receiver, case, delivery=None, *secrets):
    """Send a captured delivery to a source of its own; one that signs its URL is signed anew for ours."""
    name = str(case).partition("/")[0]
    receiver.add(name, case.provider, *(secrets or (case.secret,)))
    receiver.now = case.now
    if case.provider.signs_url and delivery is None:
        moved = replace(case, delivery=replace(case.delivery, url=f"https://hooks.example.com/hooks/{name}"))
        delivery = moved.signed()
    return receiver.send(name, delivery or case.delivery)


def test_body_may_be_no_larger_than_its_sender_ever_sends(receiver):
    case = genuine()["braintree"]
    large = replace(case.delivery, body=bytes(case.provider.max_body + 1))

    assert take(receiver, case, large).status_code == 413


def test_every_reply_of_a_senders_own_is_in_a_table():
    assert {name for name in with_a_fixed_reply() if name not in WANTED} == set()
    assert {name.partition("/")[0] for name in WANTED_OF_SOME} == made()
    assert {name for name in picky() if name not in STATUSES} == set()


@for_each(with_a_fixed_reply)
def test_sender_gets_its_own_reply_each_time(name, receiver):
    answers = [take(receiver, genuine()[name]) for _ in range(2)]

    assert [(each.status_code, each.content_type, each.text) for each in answers] == [WANTED[name]] * 2


@for_each(WANTED_OF_SOME)
def test_sender_gets_the_reply_that_is_made_of_its_delivery(name, receiver):
    answers = [take(receiver, captured_as(name)) for _ in range(2)]

    assert [(each.status_code, each.content_type, each.text) for each in answers] == [
        WANTED_OF_SOME[name]
    ] * 2


@for_each(picky)
def test_forged_delivery_gets_the_status_its_sender_wants(name, receiver):
    case = genuine()[name]

    answer = take(receiver, case, None, case.wrong)

    assert (answer.status_code, answer.json["code"]) == (STATUSES[name], "bad_signature")


@for_each(genuine)
def test_delivery_without_what_proves_it_is_401_unless_its_sender_wants_another_status(name, receiver):
    case = genuine()[name]
    bare = replace(case.delivery, url="", headers={}, body=b"{}", path_secret="")

    answer = take(receiver, case, bare)

    reason = Reason(answer.json["code"])
    assert answer.status_code == case.provider.statuses.get(reason, OURS.get(reason, 401))


@for_each(genuine)
def test_malformed_signature_is_401_unless_its_sender_wants_another_status(name, receiver):
    case = genuine()[name]
    signed = case.signed() if case.signing else case.delivery
    malformed = replace(
        signed,
        url=signed.url.partition("?")[0],
        headers={header: "invalid" for header in signed.headers if header != "content-type"},
        body=b"invalid",
        path_secret=signed.path_secret and "invalid",
    )

    answer = take(receiver, case, malformed)

    assert answer.status_code == case.provider.statuses.get(Reason.BAD_HEADER, 401)


def test_workflow_of_hubspot_may_come_by_get(receiver):
    case = captured_as("hubspot/v2-get-docs")

    answer = take(receiver, case)

    assert (answer.status_code, answer.json["status"]) == (200, "accepted")
    refused = take(receiver, case, replace(case.delivery, method="PUT"))
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST, GET")


def test_message_of_twilio_may_come_by_get_and_its_fields_are_kept(receiver):
    case = genuine()["twilio"]
    url = "https://hooks.example.com/hooks/twilio?MessageSid=SM1&SmsStatus=received&Body=Gr%C3%BC%C3%9Fe+%26+more"
    signed = case.provider.sign(b"", case.secret, case.now, url=url)

    answer = take(receiver, case, Delivery("GET", url, signed, b""))

    assert (answer.status_code, answer.text) == (200, "<Response/>")
    [[stored]] = receiver.query(
        "SELECT b.body FROM hookonce.bodies b JOIN hookonce.event_states e ON e.id = b.event WHERE event_id = 'SM1'"
    )
    assert stored.decode() == url.partition("?")[2]


def test_hookdeck_passes_on_the_method_of_the_first_sender(receiver):
    case = captured_as("hookdeck/binary")

    answer = take(receiver, case, replace(case.delivery, method="PUT"))

    assert (answer.status_code, answer.json["status"]) == (200, "accepted")


def test_ping_of_github_is_an_event_like_any_other(receiver):
    case = next(case for case in captured_of("github") if case.is_genuine)
    headers = {**case.delivery.headers, "x-github-event": "ping", "x-github-delivery": "the-ping"}

    answer = take(receiver, case, replace(case.delivery, headers=headers))

    assert answer.json["events"] == [{"event_id": "the-ping", "status": "accepted"}]
    assert receiver.query("SELECT type FROM hookonce.event_states WHERE event_id = 'the-ping'") == [("ping",)]
