import pytest

from hookonce.receiver.desk.dead_letters import pattern_of
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import fail, put_into_state


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        ("ValueError: no such customer: cus_NffrFeUfNV2Hib", "ValueError: no such customer: *"),
        ("took 31 s", "took * s*"),
        ("KeyError: 'amount'\nTraceback", "KeyError: 'amount'*"),
        ("id 7f9c24e5-1a2b-4c3d-8e9f-0123456789ab gone", "id * gone*"),
        ("sha 0123456789abcdef0123 at 0xffff", "sha * at *"),
        ("snake_case_name stays", "snake_case_name stays*"),
        ("", "*"),
    ],
)
def test_pattern_leaves_out_what_varies_within_a_cause(error, pattern):
    assert pattern_of(error) == pattern


def test_one_issue_is_one_cause_whatever_its_errors_say(everywhere):
    errors = ["ValueError: no such customer", "ValueError: no such product", "TimeoutError: took 3 s"]
    events = store(everywhere.connection, [new_event(f"evt_{n}", type="dies") for n in range(3)])
    numbers = sorted(row.id for row in events.values())
    for number, error, issue in zip(numbers, errors, ["1f0c2a9be477", "1f0c2a9be477", None], strict=True):
        put_into_state(everywhere.connection, number, "dead", [("shop.credit", "dead", 1)])
        everywhere.connection.execute("UPDATE hookonce.runs SET issue = %s WHERE event = %s", [issue, number])
        fail(everywhere.connection, number, error)

    told = everywhere.ask("api", "list_dead_letters", {"type": "dies"}, [])["data"]
    typed = everywhere.run(
        "events", "list", "--status", "dead", "--type", "dies", "--group", "--json"
    ).documents

    expected = [("ValueError: no such *", "1f0c2a9be477", 2), ("TimeoutError: took * s*", None, 1)]
    assert [(each["error"], each["issue"], each["count"]) for each in told] == expected
    assert typed == told
