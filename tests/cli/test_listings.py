import pytest

from hookonce.receiver.ledger import rejected
from hookonce.receiver.ledger.stats import event_counts

AROUND = [
    ("'{}'", "quotes"),
    ('{}"', "quotes"),
    ("{}\n", "a line end"),
    ("{}\r\n", "a line end"),
    (" {}", "blanks"),
]


@pytest.mark.usefixtures("inbox")
def test_conflicts_lists_the_other_bodies(hookonce, stored):
    number = stored("evt_1")
    stored("evt_1", body=b"another")

    listed = hookonce("events", "conflicts", "--json").documents

    assert [(row["event"], row["event_id"], row["bytes"]) for row in listed] == [(number, "evt_1", 7)]


@pytest.mark.usefixtures("inbox")
def test_sources_lists_no_secret(hookonce):
    hookonce("pause", "github")

    listed = hookonce("sources", "list", "--json")

    assert [(row["name"], row["repeats"], row["is_paused"]) for row in listed.documents] == [
        ("github", "hold", True),
        ("stripe", "run", False),
    ]
    assert b"of the tests" not in listed.out + hookonce("sources", "list").out


@pytest.mark.usefixtures("inbox", "rings")
@pytest.mark.parametrize(("written", "around"), AROUND)
@pytest.mark.parametrize("kind", ["env", "file"])
def test_what_stands_around_a_secret_is_listed_and_examined(
    hookonce, inbox, monkeypatch, kind, written, around
):
    value = written.format("hush-hush-of-shopify")
    monkeypatch.setenv("HUSH", value)
    (inbox / "hush").write_bytes(value.encode())
    reference = "env:HUSH" if kind == "env" else f"file:{inbox}/hush"
    with (inbox / "hookonce.toml").open("a") as config:
        config.write(f'[sources.shopify]\nsecrets = ["{reference}"]\n')

    listed, examined = hookonce("sources", "list"), hookonce("doctor", "--json")

    said = f"the secret in {reference} has {around} around it"
    assert said in listed.err
    [found] = [each for each in examined.documents if said in each["text"]]
    assert (found["check"], found["level"]) == ("source shopify", "warn" if around == "quotes" else "ok")
    assert "hush-hush" not in listed.err + found["text"]


@pytest.mark.usefixtures("inbox")
def test_sources_say_how_often_each_secret_is_used(hookonce, ledger):
    rejected.add_secret_uses(ledger, {("stripe", 1): 5, ("stripe", 2): 1})

    rows = {row["name"]: row["secrets"] for row in hookonce("sources", "list", "--json").documents}

    assert [(row["slot"], row["count"]) for row in rows["stripe"]] == [(1, 5), (2, 1)]
    assert [(row["slot"], row["count"], row["last_used"]) for row in rows["github"]] == [(1, 0, None)]
    assert "1: used 5 times, last 20" in hookonce("sources", "list").out.decode()


@pytest.mark.usefixtures("place")
def test_sources_lists_without_a_database(hookonce):
    listed = hookonce("sources", "list", "--json")

    assert (listed.code, listed.documents[0]["is_paused"]) == (0, None)


@pytest.mark.usefixtures("inbox")
def test_stats_recounts_what_was_changed_by_hand(hookonce, stored, ledger):
    stored("evt_1", status="done")
    event_counts.advance(ledger, event_counts.mark(ledger))
    ledger.execute("UPDATE hookonce.events SET source = 'billing'")

    before, after = (hookonce("stats", "--json", *options).documents[0] for options in ([], ["--recount"]))

    assert [each["events"][0]["source"] for each in (before, after)] == ["stripe", "billing"]


def test_sources_lists_what_dev_made_up_and_passes_over_what_is_no_provider(place, hookonce):
    (place / "hookonce.toml").unlink()
    (place / ".hookonce").mkdir()
    (place / ".hookonce/dev.json").write_text('{"port": 1, "secrets": {"stripe": "whsec_x", "gone": "y"}}')

    listed = hookonce("sources", "list", "--json").documents

    assert [(row["name"], [each["slot"] for each in row["secrets"]]) for row in listed] == [("stripe", [1])]
