import subprocess
import sys

import pytest

from receiver.cli.new_config import CanNotEdit, with_place


def test_new_provider_passes_its_own_tests_at_once(place, hookonce):
    made = hookonce("new", "provider", "acme-pay")

    assert made.code == 0
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/providers/acme_pay"], cwd=place, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "14 passed" in tested.stdout
    assert (place / "hookonce.toml").read_text().endswith('\n[receiver]\nproviders = ["webhook_providers"]\n')
    assert "acme_pay" in [row["name"] for row in hookonce("providers", "list", "--json").documents]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("name", "code"), [("stripe", 1), ("Äcme", 2), ("../x", 2), ("class", 2)])
def test_new_provider_refuses_a_name_that_is_taken_or_no_name(place, hookonce, name, code):
    assert hookonce("new", "provider", name).code == code
    assert not (place / "webhook_providers").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[receiver]\nproviders = ["p"]\n'),
        (
            "# mine\n[sources.a]\nsecrets = []",
            '# mine\n[sources.a]\nsecrets = []\n\n[receiver]\nproviders = ["p"]\n',
        ),
        ("[receiver] # x\n[sources.a]\n", '[receiver] # x\nproviders = ["p"]\n[sources.a]\n'),
        ("[receiver]\nproviders = []\n", '[receiver]\nproviders = ["p"]\n'),
        ('[receiver]\nproviders = [  # x\n  "q",\n]\n', '[receiver]\nproviders = ["p",   # x\n  "q",\n]\n'),
        ('[receiver]\nproviders = [\n  "q",\n]\n', '[receiver]\nproviders = ["p", \n  "q",\n]\n'),
    ],
)
def test_registering_changes_nothing_but_the_list(before, after):
    assert with_place(before, "p") == after


@pytest.mark.parametrize(
    "text", ['receiver = { handlers = ["h"] }\n', 'receiver.handlers = ["h"]\n', '"""', "receiver = 1\n"]
)
def test_registering_gives_up_on_what_it_can_not_edit(text):
    with pytest.raises(CanNotEdit):
        with_place(text, "p")
