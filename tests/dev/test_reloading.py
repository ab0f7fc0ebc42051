"""What `hookonce dev` does when somebody saves a file."""

import json
import time

import pytest

from hookonce.receiver.dev.stack import free_port
from tests.support.dev_stack import hookonce, started

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


@pytest.fixture
def place(data_directory):
    (data_directory / "handlers.py").write_text(HANDLERS.replace("VERSION", "1"))
    (data_directory / "hookonce.toml").write_text(TOML)
    (data_directory / ".env").write_text(DOTENV)
    return data_directory


def result(dev, event_id):
    shown = json.loads(dev.run("events", "show", f"stripe:{event_id}", "--json").stdout)
    return shown["runs"][0]["result"]


def save(dev, name, text):
    """Write a file as an editor does; forget what dev has said before."""
    dev.output = ""
    unfinished = dev.place / f"{name}.tmp"
    unfinished.write_text(text)
    unfinished.replace(dev.place / name)


def test_saved_handler_does_the_next_event_and_a_broken_one_waits_to_be_mended(place):
    with started(place) as dev:
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


def test_handlers_that_can_not_be_imported_at_the_start_are_mended_without_another(place):
    (place / "handlers.py").write_text("import nonsense\n")

    with started(place) as dev:
        assert dev.output.index("No module named 'nonsense' (handlers.py:1)") < dev.output.index(
            "/hooks/stripe"
        )
        assert "http://127.0.0.1" in dev.output

        save(dev, "handlers.py", HANDLERS.replace("VERSION", "1"))
        dev.until("loaded +2 handlers")


def test_saved_configuration_is_in_force_and_one_with_a_mistake_changes_nothing(place):
    with started(place) as dev:
        assert "command of shop, done by handlers:credit" in dev.output
        assert "secret as configured" in dev.output

        save(dev, "hookonce.toml", TOML + "[sources.strip]\n")
        dev.until("no provider is called 'strip'")
        dev.until("what runs goes on as it was")
        assert dev.post("evt_1", SECRET).status_code == 200

        save(dev, "hookonce.toml", TOML + "[sources.shopify]\n")
        dev.until("^shopify .*/hooks/shopify\n *secret")
        dev.until("loaded +2 handlers")

        save(dev, ".env", DOTENV.replace(SECRET, OTHER))
        answers = []
        while answers[-1:] != [200] and len(answers) < 1000:  # none is refused a connection meanwhile
            answers.append(dev.post(f"evt_{len(answers)}_of_others", OTHER).status_code)
        assert set(answers) <= {200, 401}
        assert answers[-1] == 200
        assert dev.post("evt_2", SECRET).status_code == 401


def test_saved_handler_is_loaded_within_a_second(place):
    with started(place) as dev:
        took = []
        for version in range(2, 5):
            began = time.monotonic()
            save(dev, "handlers.py", HANDLERS.replace("VERSION", str(version)))
            dev.until("loaded +2 handlers")
            took.append(time.monotonic() - began)

        assert min(took) < 1, took


def test_new_folder_with_code_is_watched_too(place):
    (place / "hookonce.toml").write_text(TOML.replace('["handlers"]', '["handlers", "shop.more"]'))
    (place / "shop").mkdir()
    (place / "shop" / "more.py").write_text("")

    with started(place) as dev:
        (place / "shop" / "deeper").mkdir()
        dev.output = ""
        (place / "shop" / "deeper" / "__init__.py").write_text("")
        dev.until(r"changed +shop/deeper/__init__.py")


def test_command_without_its_token_is_told_by_the_name_of_the_variable(place):
    (place / ".env").write_text(f"STRIPE_WEBHOOK_SECRET={SECRET}\n")

    refused = hookonce("dev", "--port", str(free_port()), place=place)

    assert refused.returncode == 78
    assert "[commands.payments] auth of 'shop': SHOP_TOKEN is not set" in refused.stderr
