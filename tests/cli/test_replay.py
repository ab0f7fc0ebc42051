import pytest

pytestmark = pytest.mark.usefixtures("inbox")


@pytest.fixture
def state(ledger):
    def read(number):
        event = ledger.execute(
            "SELECT status, due_at <= now() FROM events WHERE id = %s", [number]
        ).fetchone()
        runs = ledger.execute(
            "SELECT handler, status, attempts, cycle FROM runs WHERE event = %s ORDER BY handler", [number]
        )
        return event, runs.fetchall()

    return read


@pytest.fixture
def audited(ledger):
    def read():
        rows = ledger.execute("SELECT action, subject, detail FROM audit ORDER BY id").fetchall()
        return [(action, subject, detail["outcome"]) for action, subject, detail in rows]

    return read


def test_replay_gives_a_dead_event_a_new_cycle_once_however_often_it_is_asked(
    hookonce, stored, state, audited
):
    number = stored("evt_1", status="dead", runs=[("a", "done", 1), ("b", "dead", 10)])

    codes = [hookonce("replay", number).code, hookonce("replay", "stripe:evt_1").code]

    assert codes == [0, 0]
    assert state(number) == (("waiting", True), [("a", "waiting", 0, 2), ("b", "waiting", 0, 2)])
    subject = f"event {number}"
    assert audited() == [("replay", subject, "replayed"), ("replay", subject, "already queued")]


def test_replay_leaves_a_running_run_alone_and_says_so(hookonce, stored, state):
    number = stored("evt_1", status="running", runs=[("a", "running", 1), ("b", "dead", 10)])

    replayed = hookonce("replay", number)

    assert replayed.code == 3
    assert "running and left alone: a" in replayed.err
    assert state(number) == (("running", True), [("a", "running", 1, 1), ("b", "waiting", 0, 2)])


@pytest.mark.parametrize("status", ["ignored", "held"])
def test_replay_makes_an_event_without_runs_due(hookonce, stored, state, audited, status):
    number = stored("evt_1", status=status)

    assert hookonce("replay", number).code == 0

    assert state(number) == (("received", True), [])
    assert audited()[0][0] == ("release" if status == "held" else "replay")


def test_replay_refuses_an_event_whose_body_was_dropped(hookonce, stored, ledger, state):
    number = stored("evt_1", status="done", runs=[("a", "done", 1)])
    ledger.execute("DELETE FROM bodies")

    replayed = hookonce("replay", number)

    assert (replayed.code, state(number)[0]) == (1, ("done", None))
    assert "its body was dropped by retention" in replayed.err


def test_replay_refuses_what_the_provider_could_not_read(hookonce, stored, state):
    number = stored("evt_1", status="dead", type="unreadable")

    replayed = hookonce("replay", number)

    assert (replayed.code, state(number)[0]) == (1, ("dead", None))
    assert "could not read it" in replayed.err


def test_replay_takes_all_in_a_status_that_match(hookonce, stored, state):
    wanted = [stored(f"evt_{n}", status="dead", runs=[("a", "dead", 1)]) for n in range(3)]
    others = [
        stored("evt_x", status="dead", type="other", runs=[("a", "dead", 1)]),
        stored("evt_y", status="held"),
    ]

    replayed = hookonce(
        "replay", "--status", "dead", "--type", "invoice.*", "--since", "2h", "--yes", "--json"
    )

    assert replayed.code == 0
    assert [document["id"] for document in replayed.documents] == wanted
    assert {state(number)[0] for number in wanted} == {("waiting", True)}
    assert [state(number)[0][0] for number in others] == ["dead", "held"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["1", "--status", "dead"], 2),
        (["1", "--since", "2h"], 2),
        (["--status", "dead"], 2),  # stdin is no terminal: it must not wait for an answer
        (["--status", "held", "--yes"], 0),
        (["12345"], 4),
        (["stripe:evt_1", "12345"], 3),
    ],
)
def test_replay_ends_with_the_code_that_says_how_much_was_done(hookonce, stored, arguments, code):
    stored("evt_1", status="dead", runs=[("a", "dead", 1)])

    assert hookonce("replay", *arguments).code == code


def test_replay_rings_the_bell_once_for_many(hookonce, stored, rings):
    numbers = [stored(f"evt_{n}", status="held") for n in range(3)]

    hookonce("replay", *numbers)

    assert rings() == 1
