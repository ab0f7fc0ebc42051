"""What `hookonce dev` does when somebody saves a file."""

import itertools
import json
import py_compile
import shutil
import tempfile
from pathlib import Path

import pytest

from hookonce.receiver.dev.stack import free_port
from tests.support.dev_stack import hookonce, save, started

HANDLERS = """
from hookonce import on

@on("stripe", "invoice.paid", name="credit", attempts=1)
def credit(event, tx):
    return {"version": VERSION}
"""
TOML = """
[receiver]
handlers = ["handlers"]
[sources.stripe]
secrets = ["env:STRIPE_WEBHOOK_SECRET"]
[commands.payments]
handler = "handlers:credit"
auth = { shop = ["env:SHOP_TOKEN"] }
"""
SECRET, OTHER = "whsec_b25l", "whsec_b3RoZXI="
DOTENV = f"STRIPE_WEBHOOK_SECRET={SECRET}\nSHOP_TOKEN=the-token-of-the-shop\n"
FILES = {"handlers.py": HANDLERS.replace("VERSION", "1"), "hookonce.toml": TOML, ".env": DOTENV}
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def running(disk):
    """A `hookonce dev` whose handlers could not be imported when it began, and were mended since."""
    place = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    place.chmod(0o711)  # PostgreSQL runs as another user if we are root
    for name, text in {**FILES, "handlers.py": "import nonsense\n"}.items():
        (place / name).write_text(text)
    with started(place) as dev:
        dev.introduction = dev.output
        save(dev, "handlers.py", FILES["handlers.py"])
        dev.until("loaded +2 handlers")
        yield dev
    shutil.rmtree(place)


@pytest.fixture
def dev(running):
    """The same, its files as they were; all that it had to say before has been said."""
    for name in ("hookonce.toml", ".env"):
        if (running.place / name).read_text() != FILES[name]:
            save(running, name, FILES[name])
    number = next(NUMBERS)
    save(running, "handlers.py", f"import nonsense{number}\n")
    running.until(f"No module named 'nonsense{number}'")
    save(running, "handlers.py", FILES["handlers.py"])
    running.until("loaded +2 handlers")
    return running


def result(dev, event_id):
    shown = json.loads(dev.run("events", "show", f"stripe:{event_id}", "--json").stdout)
    return shown["runs"][0]["result"]


def test_saved_handler_does_the_next_event_and_a_broken_one_waits_to_be_mended(dev):
    dev.post("evt_1", SECRET)
    dev.until("done +invoice.paid")

    save(dev, "handlers.py", HANDLERS.replace("VERSION", "2"))
    dev.until("loaded +2 handlers")
    dev.post("evt_2", SECRET)
    dev.until("done +invoice.paid")

    save(dev, "handlers.py", "import nonsense\n")
    dev.until("does not import: ModuleNotFoundError.*handlers.py:1")
    assert dev.post("evt_3", SECRET).status_code == 200

    save(dev, "handlers.py", HANDLERS.replace("VERSION", "event.data['nothing']"))
    dev.until(r"dead +invoice.paid  credit  KeyError: 'nothing' \(handlers.py:6\)  \(attempt 1")

    said = [result(dev, each) for each in ("evt_1", "evt_2")]
    assert said == [{"version": 1}, {"version": 2}], dev.run("events", "show", "2").stdout
    assert dev.process.poll() is None


def test_file_of_the_same_size_and_second_is_read_anew(dev):
    """Python itself would take the bytecode of what was there before."""
    dev.post("evt_6", SECRET)
    dev.until("done +invoice.paid")
    handlers = dev.place / "handlers.py"
    before = handlers.stat()
    py_compile.compile(str(handlers), doraise=True)

    save(dev, "handlers.py", HANDLERS.replace("VERSION", "2"), at=before.st_mtime_ns)
    dev.until("loaded +2 handlers")
    dev.post("evt_7", SECRET)
    dev.until("done +invoice.paid")

    assert handlers.stat().st_size == before.st_size
    assert result(dev, "evt_7") == {"version": 2}


def test_handlers_that_can_not_be_imported_at_the_start_are_mended_without_another(running):
    said = running.introduction

    assert said.index("No module named 'nonsense' (handlers.py:1)") < said.index("/hooks/stripe")
    assert "http://127.0.0.1" in said
    assert running.process.poll() is None


def test_saved_configuration_is_in_force_and_one_with_a_mistake_changes_nothing(dev):
    assert "command of shop, done by handlers:credit" in dev.introduction
    assert "secret as configured" in dev.introduction

    save(dev, "hookonce.toml", TOML + "[sources.strip]\n")
    dev.until("no provider is called 'strip'")
    dev.until("what runs goes on as it was")
    assert dev.post("evt_4", SECRET).status_code == 200
    dev.until("done +invoice.paid")

    save(dev, "hookonce.toml", TOML + "[sources.shopify]\n")
    dev.until("^shopify .*/hooks/shopify\n *secret")
    dev.until("loaded +2 handlers")

    save(dev, ".env", DOTENV.replace(SECRET, OTHER))
    answers = []
    while answers[-1:] != [200] and len(answers) < 1000:  # none is refused a connection meanwhile
        answers.append(dev.post(f"evt_{len(answers)}_of_others", OTHER).status_code)
    assert set(answers) <= {200, 401}
    assert answers[-1] == 200
    assert dev.post("evt_5", SECRET).status_code == 401
    dev.until("done +invoice.paid")


def test_new_folder_with_code_is_watched_too(dev):
    shop = dev.place / "shop"
    shop.mkdir()
    (shop / "more.py").write_text("")
    save(dev, "hookonce.toml", TOML.replace('["handlers"]', '["handlers", "shop.more"]'))
    dev.until("loaded +2 handlers")

    (shop / "deeper").mkdir()
    (shop / "deeper" / "__init__.py").write_text("")

    dev.until(r"changed +shop/deeper/__init__.py")


def test_command_without_its_token_is_told_by_the_name_of_the_variable(tmp_path):
    for name, text in {**FILES, ".env": f"STRIPE_WEBHOOK_SECRET={SECRET}\n"}.items():
        (tmp_path / name).write_text(text)

    refused = hookonce("dev", "--port", str(free_port()), place=tmp_path)

    assert refused.returncode == 78
    assert "[commands.payments.auth] shop: entry 1: SHOP_TOKEN is not set" in refused.stderr
