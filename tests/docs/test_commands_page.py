"""Runs the command of docs/how-to/commands.md, and compares the contract for clients with what they are told."""

import re
import sys
import types
from pathlib import Path

import pytest

from tests.support.commands import Shop

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/commands.md").read_text()
CONTRACT = (ROOT / "docs/reference/client-contract.md").read_text()
TOKENS = {name: f"a-token-of-the-client-{name}" for name in ("SHOP_TOKEN", "WEB_TOKEN", "WEB_TOKEN_OLD")}
SAID = re.compile(r'refusal\(\s*(?:\d+|422 if [^,]+), "(\w+)"|problem\(\d+, "(\w+)"')


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def shop(database_url, redis_url, tmp_path, monkeypatch):
    """The page's shop, whose orders are never made; accounts 7 and 8 hold something."""
    module = types.ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", module)
    exec(compile("\n".join(blocks("python")), "commands.md", "exec"), vars(module))  # noqa: S102  our own page
    module.create_order = module.create_payment
    partner = tmp_path / "partner"
    partner.write_text("a-token-of-the-partner")
    config = "\n".join(blocks("toml")).replace("/run/secrets/partner", str(partner))
    made = Shop(database_url, redis_url, tmp_path, config=config, **TOKENS)
    made.ledger.execute("CREATE TABLE public.accounts (id int, balance int, version int)")
    made.ledger.execute("INSERT INTO public.accounts VALUES (7, 9, 1), (8, 1, 1)")
    yield made
    made.close()


def ask(shop, body, key, **headers):
    return shop.meanwhile(lambda: shop.ask(body, key, client=TOKENS["SHOP_TOKEN"], **headers))[0]


def test_command_of_the_page_pays_once_and_refuses_for_good(shop):
    body = {"account": 7, "amount": 5}

    paid = [ask(shop, body, "one", Expected_Version="1") for _ in range(2)]
    stale = ask(shop, body, "two", Expected_Version="1")
    poor = [ask(shop, {"account": 8, "amount": 5}, "three") for _ in range(2)]

    assert [(answer.status, answer.json) for answer in paid] == [(201, {"paid": 5})] * 2
    assert [answer.is_replayed for answer in paid] == [False, True]
    assert (stale.status, stale.json["code"]) == (409, "version_conflict")
    assert [(answer.status, answer.json["code"]) for answer in poor] == [(402, "no_funds")] * 2
    assert shop.rows("SELECT id, balance, version FROM public.accounts ORDER BY id") == [(7, 4, 2), (8, 1, 1)]


def test_contract_has_every_code():
    files = [*(ROOT / "receiver/commands").glob("*.py"), ROOT / "receiver/endpoints/policy.py"]
    source = "\n".join(path.read_text() for path in files)
    codes = {one or other for one, other in SAID.findall(source)} | {"bad_key", "key_missing"}
    theirs = {
        "unknown_command",
        "bad_method",
        "internal_error",
        "answer_not_kept",
    }  # not of commands, or bugs

    missing = {code for code in codes - theirs if f"`{code}`" not in CONTRACT}

    assert not missing
    assert len(codes) > 10
