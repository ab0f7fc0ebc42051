"""What docs/how-to/tunnels.md tells programs of others, compared with what is here: they need accounts."""

import re
import shlex
import tomllib
from urllib.parse import urlsplit

import pytest

from hookonce.receiver.cli.commands.dev import dev
from hookonce.receiver.cli.dev.introduction import FETCHERS, TUNNEL
from tests.support.page_commands import DOCS, blocks

PAGE = DOCS / "how-to" / "tunnels.md"
PORT = next(option.default for option in dev.params if option.name == "port")
COMMANDS = {
    line.split(" --")[0]: shlex.split(line)
    for block in blocks(PAGE)
    if not block.is_run
    for line in block.text.splitlines()
}
OPTIONS = {  # as each program's own documents have them
    "stripe listen": {"--forward-to"},
    "gh extension install cli/gh-webhook": set(),
    "gh webhook forward": {"--repo", "--events", "--url", "--secret"},
    "cloudflared tunnel": {"--url"},
    "ngrok http 8000": set(),
}


def tutorial():
    text = (DOCS / "tutorial.md").read_text()
    return tomllib.loads(re.search(r"<<'EOF_TOML'\n(.*?)^EOF_TOML", text, re.DOTALL | re.MULTILINE)[1])


def test_tunnels_page_names_options_that_the_programs_have():
    used = {
        name: {word.partition("=")[0] for word in words if word.startswith("--")}
        for name, words in COMMANDS.items()
    }

    assert used == OPTIONS


@pytest.mark.parametrize(
    ("command", "source"), [("stripe listen", "stripe"), ("gh webhook forward", "github")]
)
def test_forwarders_of_senders_are_led_to_the_source_of_the_tutorial(command, source):
    (url,) = [word for words in COMMANDS[command] for word in words.split("=") if word.startswith("http")]

    parts = urlsplit(url)
    assert (parts.hostname, parts.port, parts.path) == ("127.0.0.1", PORT, f"/hooks/{source}")
    assert tutorial()["sources"][source]["provider"] == source


def test_dev_tells_the_commands_of_this_page():
    for command in FETCHERS.values():
        words = shlex.split(command)
        (name,) = [name for name in OPTIONS if name.split() == words[: len(name.split())]]
        assert {word.partition("=")[0] for word in words if word.startswith("--")} == OPTIONS[name]
    assert shlex.split(TUNNEL)[:2] == ["cloudflared", "tunnel"]


def test_tunnels_end_where_dev_listens():
    assert COMMANDS["cloudflared tunnel"][-1] == f"http://127.0.0.1:{PORT}"
    assert COMMANDS["ngrok http 8000"][-1] == str(PORT)


def test_secrets_are_those_of_the_tutorial():
    sources = tutorial()["sources"]
    text = PAGE.read_text()

    assert f"secrets = {sources['stripe']['secrets']}".replace("'", '"') in text
    assert sources["github"]["secrets"] == ["env:GITHUB_WEBHOOK_SECRET"]
    assert "--secret=$GITHUB_WEBHOOK_SECRET" in COMMANDS["gh webhook forward"]
