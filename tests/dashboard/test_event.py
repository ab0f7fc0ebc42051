import gzip
import json
import random
import re
import subprocess
from pathlib import Path

import pytest

from hookonce.receiver.dashboard import blueprint, events
from hookonce.receiver.dashboard.event_page import body_view
from hookonce.receiver.encryption import log_context, traceback_context
from hookonce.receiver.ledger.results import LogLine, lines_as_json
from hookonce.receiver.ledger.stats.redeliveries import add_redeliveries
from hookonce.receiver.ledger.traceback_frames import Frame, Raised, Traceback
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.dashboard.test_events import EVIL
from tests.support.outcomes import fail, put_into_state


def test_event_that_is_not_there_is_told(browser):
    page = browser.get("/admin/events/7")

    assert page.status_code == 404
    assert "No event has the ledger id 7" in page.text


@pytest.mark.parametrize("number", ["0", "9" * 20, "9" * 400], ids=len)
@pytest.mark.parametrize(
    "path", ["events/{}", "events/{}/edit", "events/1/conflicts/{}", "bulk/{}", "rejected/{}"]
)
def test_number_that_no_id_has_is_not_found(browser, path, number):
    assert browser.get(f"/admin/{path.format(number)}").status_code == 404


def test_dead_event_shows_why_it_died(inbox, browser):
    (number,) = inbox.store("evt_1", body=b'{"amount":100}')
    inbox.die(number, error="ValueError: no such customer: 'cus_1'")

    page = browser.get(f"/admin/events/{number}").text

    assert '<p class="error-name id">ValueError' in page
    assert '<p class="error-message">no such customer: &#39;cus_1&#39;</p>' in page
    assert page.count("the same error") == 2
    assert '<span class="nt">"amount"</span>: <span class="m">100</span>' in page
    assert "shop.credit" in page


def test_dead_event_shows_the_tracebacks_of_its_attempts(inbox, browser, settings):
    (number,) = inbox.store("evt_1")
    inbox.die(number, attempts=3)
    for attempt, function in ((1, "<first>"), (2, "<last>"), (3, "<last>")):
        kept = raised_in(function).as_json
        text, key = settings.keyring.encrypt(kept, traceback_context(number, "shop.credit", 1, attempt))
        inbox.connection.execute(
            "UPDATE hookonce.failures SET traceback = %s, key_id = %s WHERE attempt = %s",
            [text, key, attempt],
        )

    page = browser.get(f"/admin/events/{number}").text

    assert (page.count("&lt;last&gt;"), page.count("&lt;first&gt;"), page.count("<first>")) == (2, 1, 0)


def test_markup_in_logs_tracebacks_and_messages_stays_text(inbox, browser, settings):
    (number,) = inbox.store("evt_1")
    inbox.die(number, error=f"ValueError: {EVIL}", attempts=1)
    which = (number, "shop.credit", 1, 1)
    frame = Frame(EVIL, 7, EVIL, (EVIL,), is_users=True, folder=EVIL, local_values=((EVIL, EVIL),))
    said = Traceback(
        (Raised(f"KeyError: {EVIL}", (frame,), "cause"), Raised(f"ValueError: {EVIL}", (frame,)))
    )
    traceback, key = settings.keyring.encrypt(said.as_json, traceback_context(*which))
    inbox.connection.execute("UPDATE hookonce.failures SET traceback = %s, key_id = %s", [traceback, key])
    lines = lines_as_json(
        [
            LogLine(at=1, level="error", logger=EVIL, text=EVIL),
            LogLine(at=2, level=EVIL, logger="stdout", text=EVIL),
        ],
        0,
    )
    inbox.connection.execute(
        "INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines, key_id) "
        "VALUES (%s, %s, %s, %s, now(), %s, %s)",
        [*which, *settings.keyring.encrypt(lines, log_context(*which))],
    )

    page = browser.get(f"/admin/events/{number}").text.split("<main")[1]

    def markup_as_text(begin, end):
        return page.split(begin)[1].split(end)[0].count("&lt;script&gt;")

    assert "<script" not in page
    assert "<img" not in page
    assert markup_as_text('<ol class="log"', "</ol>") == 4
    assert markup_as_text('<p class="error-message">', "</p>") == 1
    assert markup_as_text('<div class="frame">', "</pre>") == 3
    assert markup_as_text('<details class="locals">', "</details>") == 2
    assert markup_as_text('<details class="cause">', "</summary>") == 1
    assert markup_as_text('id="traceback-1"', "</pre>") == 10


def test_event_shows_redeliveries_repeats_and_conflicts(inbox, browser):
    first, second = inbox.store("gh_1", "gh_2", source="github", id_is_signed=False, body=b"[1]")
    inbox.store("gh_1", source="github", id_is_signed=False, body=b'{"other": true}')
    add_redeliveries(inbox.connection, {("github", "gh_1"): 2})

    page = browser.get(f"/admin/events/{first}").text
    again = browser.get(f"/admin/events/{second}").text

    assert "answered as duplicate" in page
    assert f'<a href="/admin/events/{second}">{second}</a>' in page
    assert "Other bodies under this id" in page
    assert '<span class="nt">"other"</span>: <span class="k">true</span>' in page
    assert f'<a href="/admin/events/{first}">event {first}</a>' in again


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("erased_at = NULL", "The body was dropped by retention"),
        ("erased_at = now()", "The body was erased"),
        ("keep_body = false", "The body is not kept by its source"),
    ],
)
def test_event_without_a_body_says_where_it_went(inbox, browser, change, said):
    (number,) = inbox.store("evt_1")
    inbox.connection.execute("DELETE FROM hookonce.bodies")
    inbox.connection.execute(f"UPDATE hookonce.events SET {change}")  # noqa: S608  of the table above

    page = browser.get(f"/admin/events/{number}").text

    assert said in page
    assert "/replay" not in page


def test_open_event_refreshes_until_it_has_ended(inbox, browser):
    (number,) = inbox.store("evt_1")
    while_open = browser.get(f"/admin/events/{number}").text

    inbox.die(number)
    part = browser.get(f"/admin/events/{number}", **{"HX-Request": "true"}).text

    assert f'hx-get="/admin/events/{number}"' in while_open
    assert "hx-get" not in part
    assert "<html" not in part


def raised_in(function):
    """The traceback of an error in a function of the user's."""
    return Traceback((Raised("boom", (Frame("shop.py", 1, function, is_users=True),)),))


def fail_with_lines(inbox, settings, number, attempts, handler="shop.credit", padding=""):
    """Have an open event fail so often, each time with a traceback and a line that name the attempt."""
    keyring = settings.keyring
    for attempt in range(1, attempts + 1):
        which = number, handler, 1, attempt
        text, key = keyring.encrypt(raised_in(f"trace {attempt}.").as_json, traceback_context(*which))
        kept = {"traceback": text, "key_id": key}
        fail(inbox.connection, number, "boom", handler=handler, attempt=attempt, **kept)
        log_line(inbox, settings, which, f"line {attempt}.{padding}")


def test_page_of_fifty_places_and_five_hundred_lines_stays_small(inbox, browser, settings):
    (number,) = inbox.store("evt_1")
    put_into_state(inbox.connection, number, runs=[("shop.credit", "dead", 50)])
    source = [line for line in Path(events.__file__).read_text().splitlines() if line]
    shuffled = random.Random(1)  # noqa: S311  lines that compress badly
    words = re.findall(r"\w+", Path(__file__).read_text())
    libraries = [Frame(f"library/m{n}.py", n, words[n], tuple(source[n : n + 2])) for n in range(40)]
    for attempt in range(1, 51):
        which = number, "shop.credit", 1, attempt
        users = [
            Frame(
                f"shop/m{shuffled.randrange(30)}.py",
                at + 9,
                words[at],
                tuple(source[at : at + 9]),
                is_users=True,
            )
            for at in shuffled.sample(range(len(source) - 9), 3)
        ]
        frames = tuple(shuffled.sample(libraries, 3) + users + shuffled.sample(libraries, 6))
        raised = Traceback((Raised(f"TimeoutError: no answer to {shuffled.random()}", frames),))
        text, key = settings.keyring.encrypt(raised.as_json, traceback_context(*which))
        said, kept = raised.errors[0].said, {"traceback": text, "key_id": key}
        fail(inbox.connection, number, said, attempt=attempt, **kept)
        log_line(inbox, settings, which, *(" ".join(shuffled.sample(words, 8)) for _ in range(10)))

    page = browser.get(f"/admin/events/{number}", **{"Accept-Encoding": "gzip"})

    static = Path(blueprint.__file__).parent / "static"
    files = [path.read_bytes() for path in static.glob("*.*s") if path.name != "htmx.min.js"]
    assert len(files) == 5
    text = gzip.decompress(page.data).decode()
    assert text.count('<span class="log-text">') == 500
    assert text.count('<span class="code-line is-at">') > 50
    assert len(page.data) < 27_000
    assert sum(len(gzip.compress(each)) for each in files) < 13_500


def log_line(inbox, settings, which, *texts):
    """Have an attempt (event, handler, cycle, number) have logged lines."""
    written = lines_as_json([LogLine(at=0, level="info", logger="shop", text=text) for text in texts], 0)
    text, key = settings.keyring.encrypt(written, log_context(*which))
    inbox.connection.execute(
        "INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines, key_id)"
        " SELECT %s, %s, %s, %s, received_at, %s, %s FROM hookonce.events WHERE id = %s",
        [*which, text, key, which[0]],
    )


def test_refreshed_part_of_an_open_event_has_the_newest_attempt_only(inbox, browser, settings):
    (number,) = inbox.store("evt_1")
    put_into_state(inbox.connection, number, runs=[("shop.credit", "waiting", 3)])
    fail_with_lines(inbox, settings, number, 3)

    page = browser.get(f"/admin/events/{number}").text
    part = browser.get(f"/admin/events/{number}", **{"HX-Request": "true"}).text

    said = r"(?:trace|line) \d\."
    assert set(re.findall(said, page)) == {f"{what} {n}." for what in ("trace", "line") for n in (1, 2, 3)}
    assert set(re.findall(said, part)) == {"trace 3.", "line 3."}
    kept = re.findall(r'id="([^"]+)" hx-preserve', part)
    assert kept == [f"{what}-{b'shop.credit'.hex()}-1-{n}" for n in (2, 1) for what in ("why", "log")]
    assert all(f'id="{each}"' in page for each in kept)
    assert "hx-preserve" not in page


def test_logs_of_a_run_that_was_put_off_again_and_again_are_told_apart(inbox, browser, settings):
    (number,) = inbox.store("evt_1")
    put_into_state(inbox.connection, number, runs=[("shop.credit", "waiting", 0)])
    for n in (1, 2, 3):
        log_line(inbox, settings, (number, "shop.credit", 1, 1), f"line {n}.")

    page = browser.get(f"/admin/events/{number}").text
    part = browser.get(f"/admin/events/{number}", **{"HX-Request": "true"}).text

    opened, rest = page.split("Earlier attempts")
    assert re.findall(r"line \d\.", opened) == ["line 3."]
    assert re.findall(r"line \d\.", rest) == ["line 2.", "line 1."]
    name = f"log-{b'shop.credit'.hex()}-1-1"
    assert re.findall(rf'id="({name}[^"]*)"', page) == [f"{name}-3", f"{name}-2", name]
    assert re.findall(r"line \d\.", part) == ["line 3."]
    assert re.findall(r'id="([^"]+)" hx-preserve', part) == [f"{name}-2", name]


def test_logs_of_an_attempt_before_the_one_that_was_killed_are_not_taken_for_its_own(
    inbox, browser, settings
):
    (number,) = inbox.store("evt_1")
    inbox.die(number, error="worker lost", attempts=2)
    log_line(inbox, settings, (number, "shop.credit", 1, 1), "line 1.")

    opened, earlier = browser.get(f"/admin/events/{number}").text.split("Earlier attempts")

    assert "its process was killed" in opened
    assert "line 1." not in opened
    assert "line 1." in earlier


def test_refreshed_part_is_bounded_for_many_handlers_with_long_logs(inbox, browser, settings):
    (number,) = inbox.store("evt_1")
    handlers = [f"shop.h{n}" for n in range(4)]
    put_into_state(inbox.connection, number, runs=[(each, "waiting", 2) for each in handlers])
    for handler in handlers:
        fail_with_lines(inbox, settings, number, 2, handler, "x" * 40_000)

    page = browser.get(f"/admin/events/{number}").text
    part = browser.get(f"/admin/events/{number}", **{"HX-Request": "true"}).text

    assert page.count("x" * 40_000) == 8
    assert part.count("x" * 40_000) == 2
    assert part.count("Shown when the event has ended") == 6


def test_each_bar_leads_to_what_it_stands_for(inbox, browser, settings):
    (number,) = inbox.store("evt_1")
    put_into_state(
        inbox.connection, number, runs=[("shop.credit", "waiting", 300), ("shop.mail", "waiting", 0)]
    )
    fail_with_lines(inbox, settings, number, 300)
    inbox.connection.execute("UPDATE hookonce.failures SET attempt = 300 WHERE attempt > 297")
    inbox.connection.execute(
        "INSERT INTO hookonce.steps (event, handler, name, state, owner, started_at) SELECT %s, 'shop.credit', 'pay', "
        "'failed_final', gen_random_uuid(), max(failed_at) FROM hookonce.failures",
        [number],
    )

    page = browser.get(f"/admin/events/{number}").text

    timeline = page[page.index('id="timeline"') :]
    targets = re.findall('<a class="name[^"]*" href="#([^"]+)"', timeline)
    ids = re.findall(' id="([^"]+)"', page)
    assert len(targets) == 50 + 1 + 2
    assert len(set(targets)) == len(targets)
    assert set(targets) <= set(ids)
    assert len(set(ids)) == len(ids)
    assert "250 older attempts are not drawn" in timeline
    assert "250 older attempts are left out" in page


@pytest.mark.parametrize(("why", "text"), [("source:stripe", "its source is"), ("handler", "its handler is")])
def test_event_shows_why_it_is_parked(inbox, browser, why, text):
    (number,) = inbox.store("evt_1")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'shop.credit', waits = %s", [why])

    assert f"Parked: {text} paused." in browser.get(f"/admin/events/{number}").text


def test_run_that_waits_for_its_breaker_leads_to_it(inbox, browser):
    (number,) = inbox.store("evt_1")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'shop.credit', waits = 'handler'")
    inbox.connection.execute(
        "INSERT INTO hookonce.breakers (handler, error, failures, opened_at) VALUES ('shop.credit', 'E', 5, now())"
    )

    page = browser.get(f"/admin/events/{number}").text

    assert re.search('circuit breaker is open[.] <a href="/admin/limits">', page)


def test_axis_says_a_time_once_and_nothing_of_an_event_that_only_came(inbox, browser):
    (number,) = inbox.store("evt_1")
    axis = 'class="line axis"'
    before = browser.get(f"/admin/events/{number}").text
    put_into_state(inbox.connection, number, runs=[("shop.credit", "waiting", 1)])
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() + interval '12 hours'")
    inbox.connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, started_at, failed_at, error) "
        "SELECT id, 'shop.credit', 1, 1, received_at, received_at + interval '5 ms', 'E' FROM hookonce.events"
    )
    after = browser.get(f"/admin/events/{number}").text

    assert axis not in before
    assert after.partition(axis)[2].partition("</svg>")[0].count("12 h") == 1


@pytest.mark.parametrize(
    ("status", "button", "said", "notice"),
    [
        ("ignored", "Replay", "replayed", "its runs have new attempts"),
        ("held", "Release", "released", "its handlers take it now"),
    ],
)
def test_replay_by_a_button_rings_and_is_audited(inbox, browser, redis_url, status, button, said, notice):
    (number,) = inbox.store("evt_1")
    put_into_state(inbox.connection, number, status)
    assert f">{button}</button>" in browser.get(f"/admin/events/{number}").text

    answer = browser.post(f"/admin/events/{number}/replay")

    assert answer.location == f"/admin/events/{number}?said={said}"
    assert notice in browser.get(answer.location).text
    assert inbox.audit()[-1][::2] == ("admin (dashboard)", f"event {number}")
    with connect(redis_url) as client:
        assert WorkQueue(client).pending() == 1


def test_event_that_is_done_is_run_again_by_a_second_button(inbox, browser):
    (number,) = inbox.store("evt_1")
    put_into_state(inbox.connection, number, runs=[("shop.credit", "done", 1)])
    cycle = "SELECT cycle FROM hookonce.run_states"
    browser.get(f"/admin/events/{number}")

    asked = browser.post(f"/admin/events/{number}/replay")
    before = inbox.rows(cycle)
    seen = re.search('name="seen" value="([0-9a-f]{16})"', asked.text)[1]
    answers = []
    for _ in range(2):
        browser.get(f"/admin/events/{number}")
        answers.append(browser.post(f"/admin/events/{number}/replay", again="yes", seen=seen))

    assert (asked.status_code, before) == (200, [(1,)])
    assert "shop.credit" in asked.text
    assert "Run again</button>" in asked.text
    assert [answer.location.partition("said=")[2] for answer in answers] == ["replayed", "changed"]
    assert inbox.rows(cycle) == [(2,)]


@pytest.mark.parametrize("body", [b"<script>alert(1)</script>", b"\x00\xff\xfe", b""])
def test_body_is_downloaded_as_a_file_and_never_shown_as_a_page(inbox, browser, body):
    (number,) = inbox.store("evt_1", body=body)

    answer = browser.get(f"/admin/events/{number}/body")

    assert answer.data == body
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="event-{number}.bin"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_other_body_of_a_conflict_is_downloaded(inbox, browser):
    (number,) = inbox.store("evt_1", body=b"1")
    inbox.store("evt_1", body=b"2")
    path = re.search(r"/admin/events/\d+/conflicts/\d+", browser.get(f"/admin/events/{number}").text)[0]

    assert browser.get(path).data == b"2"
    assert browser.get(path + "0").status_code == 404


def test_event_escapes_whatever_a_sender_or_a_handler_wrote(inbox, browser):
    headers = json.dumps({EVIL: EVIL})
    body = json.dumps({EVIL: EVIL}).encode()
    (number,) = inbox.store(EVIL, type=EVIL, account=EVIL, headers=headers, body=body)
    inbox.store(EVIL, body=EVIL.encode())
    inbox.die(number, handler=EVIL.replace("\x1b", ""), error=EVIL)
    inbox.connection.execute("UPDATE hookonce.runs SET result = %s::json", [json.dumps(EVIL)])

    page = browser.get(f"/admin/events/{number}").text

    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize(
    ("body", "pretty"),
    [
        (b'{"a":1.50,"b":[1e400,{}],"c":[],"a":"\\u00e9 {x: [1,2]}"}', None),
        (b"[]", "[]"),
        (b'"text"', '"text"'),
        (b'[1,"\\"]"]', '[\n  1,\n  "\\"]"\n]'),
    ],
)
def test_json_is_indented_and_otherwise_left_alone(body, pretty):
    shown = body_view.body_view(body)

    assert pretty is None or shown.pretty == pretty
    assert "".join(shown.pretty.split()) == "".join(body.decode().split())


def test_json_of_many_levels_is_indented_as_far_as_it_is_shown():
    body = b"[" * 900 + b",".join([b"1"] * 100_000) + b"]" * 900

    shown = body_view._pretty(body.decode())  # noqa: SLF001  what is cut away must not be made

    assert body_view.MAX_SHOWN < len(shown) < body_view.MAX_SHOWN + 2_000


@pytest.mark.parametrize("body", [b"a=b", b"{", b"[" * 100_000, b"<xml/>", b"x" * 2_000_000])
def test_what_is_no_json_is_shown_as_it_is_and_bounded(body):
    shown = body_view.body_view(body)

    assert shown.pretty is None
    assert len(shown.raw) <= body_view.MAX_SHOWN


def test_bytes_are_shown_as_numbers():
    shown = body_view.body_view(b"\x00\xffPK" * 8)

    assert shown.raw.startswith("000000  00 ff 50 4b")
    assert not shown.is_text


@pytest.mark.parametrize("body", [b'{"a": "it\'s $HOME `x`"}', b"@file", b"\x00\xff\n", b"two\nlines\n", b""])
def test_curl_command_sends_the_very_body(tmp_path, body):
    (tmp_path / "curl").write_text(
        '#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n[ "$1" = @- ] && cat || printf %s "$1"\n'
    )
    (tmp_path / "curl").chmod(0o755)
    command = body_view.curl("http://127.0.0.1/hooks/x?a=1&b=2", {"x-a": "it's", "host": "elsewhere"}, body)

    sent = subprocess.run(
        ["bash", "-c", f"PATH={tmp_path}:$PATH; {command}"], capture_output=True, check=True
    )

    assert sent.stdout == body
    assert "elsewhere" not in command
