"""A client counts as genuine after a verified event, and after nothing else."""

from dataclasses import replace

from werkzeug.test import EnvironBuilder

from hookonce.receiver.web.request import GENUINE
from tests.support.captured import captured

NO_EVENTS = "asana/heartbeat"


def cases():
    return [case for case in captured() if not case.keys]


def events():
    """A delivery with events of each sender."""
    return {case.provider.name: case for case in cases() if case.is_genuine and str(case) != NO_EVENTS}


def is_genuine_after(receiver, name, delivery):
    """Have the application answer a delivery; give the status, and whether its sender counts as genuine."""
    _, mark, query = delivery.url.partition("?")
    secret = f"/{delivery.path_secret}" if delivery.path_secret else ""
    built = EnvironBuilder(
        f"/hooks/{name}{secret}{mark}{query}",
        method=delivery.method,
        headers=dict(delivery.headers),
        data=delivery.body,
    )
    environ, said = built.get_environ(), []
    b"".join(receiver.app.wsgi_app(environ, lambda status, _: said.append(int(status[:3]))))
    return said[0], GENUINE in environ


def added(receiver, case, **options):
    receiver.now = case.now
    receiver.add(case.provider.name, case.provider, *([case.secret] if case.secret else []), **options)


def test_no_probe_makes_a_client_genuine_however_it_is_answered(receiver):
    wrong, answered = [], 0
    for case in [case for case in cases() if case.reply is not None]:
        added(receiver, case)
        status, is_genuine = is_genuine_after(receiver, case.provider.name, case.delivery)
        answered += status < 300
        wrong += [str(case)] if is_genuine else []

    assert answered > 20
    assert wrong == []


def test_verified_event_makes_a_client_genuine_and_a_refused_one_does_not(receiver):
    wrong = []
    for name, case in events().items():
        added(receiver, case)
        verified = is_genuine_after(receiver, name, case.delivery)
        if verified != (verified[0], verified[0] < 300):
            wrong.append((name, verified))
        refused = is_genuine_after(
            receiver, name, replace(case.delivery, url="", headers={}, body=b"{}", path_secret="")
        )
        if refused[1]:
            wrong.append((name, "refused", refused))

    assert wrong == []


def test_delivery_of_no_events_makes_nobody_genuine(receiver):
    [case] = [case for case in cases() if str(case) == NO_EVENTS]
    added(receiver, case)

    assert is_genuine_after(receiver, "asana", case.delivery) == (200, False)


def test_event_that_anybody_may_send_makes_nobody_genuine(receiver):
    case = events()["gitlab"]
    added(receiver, case, unauthenticated=True)

    assert is_genuine_after(receiver, "gitlab", case.delivery) == (200, False)
