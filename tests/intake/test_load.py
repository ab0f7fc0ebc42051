"""How much may come of each source: refused only where it surely comes again, put off everywhere else, never lost."""

from datetime import timedelta

import pytest

from hookonce.providers.kit import sender as senders
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.redis.rate_limits import RateLimits
from tests.support.shop_sources import HMAC

NOWHERE = "redis://127.0.0.1:1/0"
REFUSED = 'rate = "2/h"\nover_limit = "refuse"'
HELD = 'rate = "2/h"'
BATCHES = """
from hookonce.providers.kit import Hmac, Sender, field, many_events, signer, told_apart_by

scheme = Hmac(header="X-Sig")
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(items="$", id=field("$.id"), type=field("$.type"))
sender = Sender(
    id_is_signed=True, retry_horizon=None, identity=told_apart_by("$[*].id"), check_secret=scheme.check_secret
)
"""
WAITING = """
SELECT event_id, status, round(extract(epoch FROM due_at - received_at) / 60)::int
FROM hookonce.event_states ORDER BY id
"""


def event(number, **more):
    return {"id": f"evt_{number}", "type": "t"} | more


def test_sender_that_comes_again_is_told_when(open_sources):
    shop = open_sources(REFUSED)

    answers = [shop.send(event(n)) for n in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json["code"] == "too_many_requests"
    assert 1700 < int(answers[2].headers["Retry-After"]) <= 1801
    assert shop.ids == ["evt_0", "evt_1"]


def test_all_others_are_held_and_everything_is_stored(open_sources):
    shop = open_sources(HELD)

    answers = [shop.status(event(n)) for n in range(5)]

    assert answers == ["accepted"] * 5
    assert shop.rows(WAITING) == [
        ("evt_0", "received", 0),
        ("evt_1", "received", 0),
        ("evt_2", "received", 30),
        ("evt_3", "received", 60),
        ("evt_4", "received", 90),
    ]


def test_held_event_runs_when_its_time_has_come_and_not_before(open_sources):
    shop, ran = open_sources(HELD), []

    def note(event, _):
        ran.append(event.event_id)

    shop.on(note)
    for n in range(4):
        shop.status(event(n))

    shop.work()
    early = list(ran)
    shop.rows(
        "UPDATE hookonce.queue SET due_at = now() WHERE due_at < now() + interval '40 min' RETURNING event"
    )
    shop.work()

    assert (sorted(early), sorted(ran)) == (["evt_0", "evt_1"], ["evt_0", "evt_1", "evt_2"])


@pytest.mark.parametrize("limit", [HELD, REFUSED, 'quota = "2/h"'])
def test_delivery_that_is_repeated_takes_nothing_from_the_limit(open_sources, limit):
    shop = open_sources(limit)

    answers = [shop.send(event(0)).json["status"] for _ in range(10)]
    later = shop.send(event(1))

    assert answers == ["accepted", *["duplicate"] * 9]
    assert later.status_code == 200
    assert [minutes for _, _, minutes in shop.rows(WAITING)] == [0, 0]


def test_repetitions_take_nothing_where_redis_is_away(open_sources):
    shop = open_sources(HELD, redis_url=NOWHERE, WEB_CONCURRENCY="1")

    for _ in range(10):
        shop.send(event(0))
    shop.send(event(1))

    assert [minutes for _, _, minutes in shop.rows(WAITING)] == [0, 0]


def test_known_events_of_a_batch_take_nothing_from_the_quota(open_sources, tmp_path):
    (tmp_path / "batches.py").write_text(BATCHES)
    top = f'[receiver]\nproviders = ["{tmp_path / "batches.py"}"]'
    shop = open_sources('quota = "4/h"', provider="batches", top=top)

    shop.send([event(0), event(1), event(2)])
    shop.send([event(0), event(1), event(2), event(3)])

    assert [row[2] for row in shop.rows(WAITING)] == [0, 0, 0, 45]
    shop.send([event(0)])
    shop.send([event(4)])
    assert shop.rows(WAITING)[-1][2] == 15


def test_held_event_is_a_duplicate_when_it_comes_again(open_sources):
    shop = open_sources(HELD)
    for n in range(4):
        shop.status(event(n))

    assert shop.status(event(3)) == "duplicate"
    assert len(shop.ids) == 4


def test_quota_counts_the_events_of_a_batch(open_sources, tmp_path):
    (tmp_path / "batches.py").write_text(BATCHES)
    top = f'[receiver]\nproviders = ["{tmp_path / "batches.py"}"]'
    shop = open_sources('quota = "3/h"', provider="batches", top=top)

    answers = [shop.send([event(f"{n}{m}") for m in range(3)]).json["status"] for n in range(2)]

    assert answers == ["accepted"] * 2
    assert [row[2] for row in shop.rows(WAITING)] == [0, 0, 0, 60, 60, 60]


def test_forged_deliveries_use_nothing_up(open_sources):
    shop = open_sources(REFUSED)

    forged = [shop.send(event(n), X_Sig="f" * 64).status_code for n in range(10)]

    assert forged == [401] * 10
    assert shop.status(event(0)) == "accepted"


def test_limit_of_one_source_takes_nothing_from_another(open_sources):
    other = '[sources.other]\nprovider = "hmac"\nsecrets = ["env:SHOP_SECRET"]\nrate = "2/h"\n' + HMAC
    shop = open_sources(REFUSED, top=other)
    for n in range(5):
        shop.send(event(n))

    shop.settings.sources["shop"], kept = shop.settings.sources["other"], shop.settings.sources["shop"]
    answer = shop.send(event("of the other"))

    assert kept.name == "shop"
    assert answer.json["status"] == "accepted"


def test_processes_count_together(open_sources):
    one, other = open_sources(REFUSED), open_sources(REFUSED)

    answers = [shop.send(event(n)).status_code for n, shop in enumerate((one, other, one, other))]

    assert answers == [200, 200, 429, 429]


def test_process_keeps_its_share_without_redis(open_sources):
    shop = open_sources('rate = "4/h"\nover_limit = "refuse"', redis_url=NOWHERE, WEB_CONCURRENCY="2")

    assert [shop.send(event(n)).status_code for n in range(4)] == [200, 200, 429, 429]


def test_source_without_limits_asks_nobody(open_sources, monkeypatch):
    shop = open_sources()
    monkeypatch.setattr(RateLimits, "wait", None)

    assert shop.status(event(0)) == "accepted"


@pytest.mark.parametrize(
    ("declared", "status"),
    [
        ({}, None),
        ({"retries_on": senders.UNSUCCESSFUL}, None),
        ({"disables_after": senders.NEVER}, None),
        ({"retries_on": senders.UNSUCCESSFUL, "disables_after": "five days of failures"}, None),
        ({"retries_on": (), "disables_after": senders.NEVER}, None),
        ({"retries_on": senders.UNSUCCESSFUL, "disables_after": senders.NEVER}, 429),
        ({"retries_on": senders.UNSUCCESSFUL, "disables_after": senders.NEVER, "retry_horizon": None}, None),
        (
            {
                "retries_on": senders.FAILURES,
                "disables_after": senders.NEVER,
                "retry_horizon": timedelta(hours=1),
            },
            None,
        ),
        ({"retries_on": senders.SERVER_ERRORS, "disables_after": senders.NEVER}, 503),
    ],
)
def test_sender_is_refused_only_if_all_is_known_of_it(declared, status):
    told = senders.Sender(**({"id_is_signed": True, "retry_horizon": timedelta(days=1)} | declared))

    assert told.may_be_refused_with == status


@pytest.mark.parametrize(
    ("provider", "said"), [("standard_webhooks", "disables endpoints"), ("github", "does not send again")]
)
def test_refusing_a_sender_that_would_be_lost_is_a_mistake(open_sources, provider, said):
    with pytest.raises(ConfigError, match=said):
        open_sources(REFUSED, provider=provider)


def test_burst_of_a_sender_that_disables_endpoints_is_all_taken_and_put_off(open_sources):
    shop = open_sources('rate = "2/h"\nquota = "1000/d"', provider="standard_webhooks")

    answers = [shop.send({"type": "t", "data": {}, "n": n}, event_id=f"evt_{n}") for n in range(6)]

    assert [answer.status_code for answer in answers] == [200] * 6
    assert len(shop.ids) == 6
    assert [minutes for _, _, minutes in shop.rows(WAITING)] == [0, 0, 30, 60, 90, 120]
