import contextlib
import json
import re
import shutil
import signal
import socket
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.dev import generated_secrets
from hookonce.receiver.dev.log_lines import failed_run, readable
from hookonce.receiver.dev.stack import free_port
from hookonce.receiver.source import Source
from tests.support.dev_stack import SECONDS, descendants, hookonce, started

HANDLERS = """
from hookonce import on

@on("stripe", "invoice.paid", name="credit")
def credit(event, tx):
    print("crediting", event.event_id)
    return {"paid": event.data["id"]}
"""


@pytest.fixture(scope="module")
def devs(disk):
    """A function that gives the `hookonce dev` of this module, or another if that was killed."""
    with contextlib.ExitStack() as stack:
        running = []

        def give():
            if not running or running[-1].process.poll() is not None:
                place = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
                stack.callback(shutil.rmtree, place)
                place.chmod(0o711)  # PostgreSQL runs as another user if we are root
                (place / "handlers.py").write_text(HANDLERS)
                running.append(stack.enter_context(started(place, HOOKONCE_HANDLERS="handlers")))
            return running[-1]

        yield give


@pytest.fixture
def dev(devs):
    return devs()


def test_demo_passes_whatever_the_user_has_configured(tmp_path):
    (tmp_path / "hookonce.toml").write_text("this is no TOML")
    hostile = {"DATABASE_URL": "postgresql://nowhere.invalid/", "HOOKONCE_HANDLERS": "absent", "PGPORT": "1"}

    demo = hookonce("demo", place=tmp_path, **hostile)

    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "12 of 12 deliveries became what they must" in demo.stdout


def test_dev_says_how_to_try_it_and_how_senders_reach_it(dev):
    dev.until("^try it, .*: hookonce trigger stripe invoice.paid$")

    hook = f"http://127.0.0.1:{dev.port}/hooks"
    assert f"from outside: stripe listen --forward-to {hook}/stripe" in dev.output
    assert f"--url={hook}/github --secret=" in dev.output
    assert "(made up, since HOOKONCE_SECRET__STRIPE is not set)" in dev.output


def test_dev_makes_two_sources_where_none_is_configured(dev):
    assert dev.secret("stripe").startswith("whsec_")
    assert len(dev.secret("github")) >= 32
    assert f"http://127.0.0.1:{dev.port}/hooks/stripe" in dev.output


def test_dev_prints_a_line_per_delivery_and_per_run(dev):
    replies = [dev.post("evt_lines", secret).status_code for secret in (dev.secret("stripe"), "whsec_other")]
    dev.until("done .*credit")
    dev.until("bad_signature")

    assert replies == [200, 401]
    lines = [line[10:] for line in dev.output.splitlines() if re.match(r"\d\d:\d\d:\d\d  ", line)]
    shown = [
        re.sub(r"\d+(?= ms$)|(?<=event )\d+", "N", line) for line in lines if "charge.failed" not in line
    ]
    assert sorted(shown) == [
        "stripe        accepted   200  invoice.paid  evt_lines  N ms",
        "stripe        done       invoice.paid  credit  (event N, attempt 1)",
        "stripe        rejected   401  bad_signature  N ms",
    ]


def test_what_a_handler_prints_is_shown_at_once_and_kept_with_its_run(dev):
    dev.post("evt_told", dev.secret("stripe"))
    dev.until("^crediting evt_told$")
    dev.until("done .*credit")

    shown = dev.run("events", "show", "evt_told")

    assert re.search(r"^ +\d+ ms  stdout: crediting evt_told$", shown.stdout, re.MULTILINE), shown.stdout


def test_commands_beside_dev_find_its_servers(dev):
    dev.post("evt_beside", dev.secret("stripe"), "charge.failed")  # that no handler takes

    listed = dev.run("events", "list", "--json")

    assert listed.returncode == 0, listed.stderr
    assert "evt_beside" in {json.loads(line)["event_id"] for line in listed.stdout.splitlines()}


def test_state_of_dev_is_for_its_owner_only(dev):
    state = dev.place / ".hookonce" / "dev.json"

    kept = json.loads(state.read_text())
    assert len(kept.pop("admin_token")) == 48
    assert kept == {
        "port": dev.port,
        "secrets": {name: dev.secret(name) for name in ("stripe", "github")},
    }
    assert stat.S_IMODE(state.stat().st_mode) == 0o600


def test_second_dev_in_a_directory_is_refused(dev):
    second = dev.run("dev", "--port", str(free_port()))

    assert second.returncode == 1
    assert "is in use by a running `hookonce dev`" in second.stderr


def test_taken_port_is_told_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        dev = hookonce("dev", "--port", str(port), place=tmp_path)

    assert (dev.returncode, dev.stderr) == (
        1,
        f"hookonce: port {port} is in use; choose another with --port\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_dev_is_introduced_and_stops_all_when_it_is_interrupted_whatever_is_logged(data_directory, await_end):
    with started(data_directory, HOOKONCE_LOG_LEVEL="ERROR") as dev:
        assert "/hooks/stripe" in dev.output
        pids = descendants(dev.process.pid)
        dev.process.send_signal(signal.SIGINT)
        dev.until("^stopped$")

        assert dev.process.wait(SECONDS) == 0
        assert "no handlers yet" in dev.output
        await_end(*pids)
    assert not (data_directory / ".hookonce" / "servers.json").exists()


def test_generated_secrets_survive_a_restart(tmp_path):
    settings = Settings("", "", {}, data=tmp_path)
    first = generated_secrets.make(settings)

    generated_secrets.save(tmp_path, 8000, first, "token")

    assert generated_secrets.make(settings) == first


def test_configured_secret_wins_over_a_kept_one(tmp_path):
    generated_secrets.save(tmp_path, 8000, {"stripe": "whsec_kept", "github": "kept"}, "token")
    environ = {"HOOKONCE_DATA": str(tmp_path), "HOOKONCE_SECRET__STRIPE": "whsec_set"}
    environ |= {"HOOKONCE_SECRET__GITHUB": ""}

    settings = load_settings(environ, need_secrets=False)

    assert generated_secrets.make(settings) == {"github": "kept"}


def test_secret_that_cannot_be_made_up_is_asked_for(tmp_path):
    class Picky:
        name, needs_secret, key_algorithm, fetches = "picky", True, None, ()

        def check_secret(self, secret):
            raise ValueError(secret)

    settings = Settings("", "", {"picky-one": Source("picky-one", Picky(), ())}, data=tmp_path)

    with pytest.raises(ConfigError, match="set HOOKONCE_SECRET__PICKY-ONE"):
        generated_secrets.make(settings)


@pytest.mark.parametrize(
    "provider", ["stripe", "github", "gitlab", "slack", "shopify", "standard_webhooks", "discord"]
)
def test_secret_of_every_kind_can_be_made_up(tmp_path, provider):
    settings = Settings("", "", {"one": Source("one", load(provider), ())}, data=tmp_path)

    (secret,) = generated_secrets.make(settings).values()

    now = datetime.now(UTC)
    assert load(provider).sign(b"{}", secret, now)


WRITTEN = {"time": "2026-01-31 12:00:00,000", "level": "INFO", "logger": "hookonce.jobs.attempts.attempt"}


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (
            {
                "message": "delivery",
                "source": "a",
                "status": "accepted",
                "events": 4,
                "event_ids": list("xyz"),
            },
            "a             accepted   x y z and 1 more",
        ),
        (
            {"message": "rejected", "source": None, "reason": "stale"},
            "(unknown)     rejected   stale",
        ),
        (
            {
                "message": "delivery",
                "source": "a",
                "status": "duplicate",
                "events": 2,
                "event_ids": ["x", "y"],
                "types": ["b.c", "b.c"],
                "http": 200,
                "ms": 12.6,
            },
            "a             duplicate  200  b.c  x y  13 ms",
        ),
        (
            {
                "message": "run",
                "source": "a",
                "type": "t\x1b[2J",
                "handler": "h",
                "attempt": 2,
                "status": "dead",
                "event": 7,
            },
            "a             dead       t\N{REPLACEMENT CHARACTER}[2J  h  (attempt 2; why: hookonce events show 7)",
        ),
        (
            {"message": "batch", "source": "a", "handler": "h", "status": "done", "events": 400},
            "a             done       h  400 events in a batch",
        ),
        (
            {"message": "batch", "handler": "h", "status": "waiting", "events": 1},
            "(several)     waiting    h  1 event in a batch",
        ),
        (
            {"message": "conflict", "source": "a", "event": 7, "level": "WARNING"},
            "a             conflict   event 7 came again with another body",
        ),
        (
            {"message": "ignored", "source": "a", "type": "b.c", "event": 7, "level": "INFO"},
            "a             ignored    b.c  no handler takes it (event 7)",
        ),
        (
            {
                "message": "alert",
                "kind": "dead_runs",
                "subject": "a",
                "status": "raised",
                "detail": "2 events died",
                "level": "WARNING",
            },
            "a             alert      dead_runs raised: 2 events died",
        ),
        ({"message": "Redis is away", "level": "WARNING"}, "warning: Redis is away"),
        (
            {"message": "put off", "level": "WARNING", "source": "a", "delivery": "0b1c"},
            "warning: put off  source=a",
        ),
        ({"message": "credited", "logger": "shop.handlers"}, "info: shop.handlers: credited"),
        (
            {"message": "run", "logger": "shop", "level": "DEBUG", "order": 7, "taskName": None},
            "debug: shop: run  order=7",
        ),
        (
            {"message": "odd", "logger": "shop", "level": "ERROR", "exc_info": "Traceback …"},
            "error: shop: odd\n    Traceback …",
        ),
    ],
)
def test_log_record_becomes_a_short_line(record, shown):
    assert readable(json.dumps(WRITTEN | record))[10:] == shown


BROKEN = "a\n12:00:00  shop  done  forged\r\x85\u2028b"


@pytest.mark.parametrize(
    "record",
    [
        {"message": "run", "type": BROKEN, "handler": "h", "status": "done", "source": "s", "event": 1},
        {"message": "run", "type": "t", "handler": "h", "status": "dead", "source": BROKEN, "event": 1},
        {"message": "delivery", "source": "s", "status": "accepted", "event_ids": [BROKEN], "events": 1},
        {"message": "delivery", "source": "s", "status": "accepted", "types": [BROKEN], "events": 1},
        {"message": "ignored", "source": "s", "type": BROKEN, "event": 1},
        {"message": "alert", "kind": "dead_runs", "status": "open", "subject": BROKEN, "detail": BROKEN},
        {"message": "conflict", "source": BROKEN, "event": BROKEN},
        {"message": f"failed: {BROKEN}", "level": "WARNING", "source": BROKEN, "event": BROKEN},
        {"message": BROKEN, "logger": "shop", "order": BROKEN},
        {"message": "m", "logger": "shop", "level": "ERROR", "exc_info": f"Traceback\nValueError: {BROKEN}"},
    ],
)
def test_line_break_of_a_sender_begins_no_line(record):
    first, *further = readable(json.dumps(WRITTEN | record)).split("\n")

    assert not first.startswith("12:00:00  shop")
    assert all(line.startswith("    ") for line in further)
    assert len("".join([first, *further]).splitlines()) == 1


@pytest.mark.parametrize(
    ("record", "failed"),
    [
        ({"status": "waiting"}, (7, "shop.credit", 2)),
        ({"status": "dead"}, (7, "shop.credit", 2)),
        ({"status": "done"}, None),
        ({"status": "dead", "logger": "shop"}, None),
        ({"message": "ignored"}, None),
    ],
)
def test_log_record_of_a_failed_attempt_is_known(record, failed):
    run = WRITTEN | {"message": "run", "event": 7, "handler": "shop.credit", "attempt": 2}

    assert failed_run(json.dumps(run | record)) == failed


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (json.dumps(WRITTEN | {"message": "made partition x"}), None),
        (json.dumps(WRITTEN | {"message": "Cleaning registries", "logger": "rq.worker"}), None),
        ('{"message": "run", "status": "dead"}', '{"message": "run", "status": "dead"}'),
        ("", None),
        ("printed by a handler", "printed by a handler"),
        ("[1, 2]", "[1, 2]"),
        ("bad \x07 bell", "bad \N{REPLACEMENT CHARACTER} bell"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_other_output_is_shown_as_it_is_or_not_at_all(line, shown):
    assert readable(line) == shown


def test_killed_dev_leaves_no_process_behind(dev, await_end):  # the last one, so that no other dev is started
    pids = descendants(dev.process.pid)

    dev.process.kill()
    dev.process.wait()

    assert len(pids) >= 8
    await_end(*pids)
