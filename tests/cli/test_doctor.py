from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from hookonce.receiver.cli.doctor import handlers as doctor_handlers
from hookonce.receiver.cli.doctor import servers
from hookonce.receiver.ledger import pauses
from tests.support import desk
from tests.support.waiting import until


def levels(examined):
    return {document["check"]: document["level"] for document in examined.documents}


@pytest.mark.usefixtures("inbox", "rings")
def test_doctor_finds_nothing_to_fail_on_a_fresh_inbox(hookonce):
    examined = hookonce("doctor", "--json")

    assert examined.code == 0
    assert set(levels(examined).values()) <= {"ok", "warn"}
    expected = {
        "schema": "ok",
        "partitions": "ok",
        "clock": "ok",
        "place": "ok",
        "log": "ok",
        "workers": "warn",
        "eviction": "ok",
    }
    assert expected.items() <= levels(examined).items()


@pytest.mark.usefixtures("inbox", "rings")
@pytest.mark.parametrize(
    ("statement", "check", "level"),
    [
        (
            "DROP TABLE hookonce.bodies CASCADE; CREATE TABLE hookonce.bodies (a int) PARTITION BY RANGE (a)",
            "partitions",
            "fail",
        ),
        ("DROP TABLE hookonce.hookonce_version", "schema", "fail"),
        ("UPDATE hookonce.queue SET due_at = now() - interval '1 hour'", "backlog", "warn"),
        ("DELETE FROM hookonce.queue", "events", "fail"),
    ],
)
def test_doctor_finds_what_is_wrong_with_the_ledger(hookonce, stored, ledger, statement, check, level):
    stored("evt_1")
    ledger.execute(statement)

    examined = hookonce("doctor", "--json")

    assert levels(examined)[check] == level
    assert examined.code == (1 if level == "fail" else 0)


@pytest.mark.usefixtures("inbox", "rings")
def test_doctor_says_what_a_person_has_paused(hookonce, ledger):
    pauses.pause(ledger, "source", "stripe", "test")

    examined = hookonce("doctor", "--json")

    (told,) = [each["text"] for each in examined.documents if each["check"] == "paused"]
    assert told.startswith("source stripe was paused")
    assert levels(examined)["paused"] == "ok"


@pytest.mark.usefixtures("inbox")
def test_doctor_does_not_call_it_well_that_events_wait_for_a_breaker(hookonce, ledger):
    desk.stop(ledger, "shop.credit", 2)

    examined = hookonce("doctor", "--json")

    (told,) = [each["text"] for each in examined.documents if each["check"] == "breaker"]
    (backlog,) = [each for each in examined.documents if each["check"] == "backlog"]
    assert levels(examined)["breaker"] == "warn"
    assert "after 5 failures in a row: ConnectionError (shop.py:7); 2 events wait, the oldest came 9" in told
    assert backlog["text"] == "nothing else has been due for long"


@pytest.fixture
def handlers(inbox, rings, monkeypatch):  # noqa: ARG001
    """Has the configuration name a module with this text."""

    def write(text):
        (inbox / "shop_handlers.py").write_text(text)
        monkeypatch.setenv("HOOKONCE_HANDLERS", "shop_handlers")

    return write


ON = "import hookonce\n@hookonce.on({})\ndef credit(event, tx): ...\n"


@pytest.mark.parametrize(
    ("text", "level", "said"),
    [
        ("print('loading', end='')\n" + ON.format("'stripe'"), "ok", "1 imports"),
        (ON.format("'stripe', rate='100/x'"), "fail", "'100/x' is not a rate"),
        (ON.format("'strip'"), "fail", "did you mean 'stripe'?"),
        ("import nonsense", "fail", "handler module 'shop_handlers' does not import: ModuleNotFoundError"),
        ("import os\nos.kill(os.getpid(), 9)", "fail", "ends the process (signal SIGKILL)"),
        ("import os\nos._exit(0)", "fail", "ends the process (exit status 0)"),
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=[99]).start()\n"
            + ON.format("'stripe'"),
            "ok",
            "1 imports",
        ),
    ],
    ids=["good", "rate", "source", "import", "killed", "exit", "thread"],
)
def test_doctor_loads_handlers_and_says_what_a_worker_would(hookonce, handlers, text, level, said):
    handlers(text)

    examined = hookonce("doctor", "--json")

    (told,) = [each for each in examined.documents if each["check"] == "handlers"]
    assert (told["level"], examined.code) == (level, int(level == "fail"))
    assert said in told["text"]


@pytest.mark.parametrize(
    ("kind", "meant"),
    [("invoice.payed", "invoice.paid"), ("invoice.paid", None), ("invoice.*", None), ("shop.of_ours", None)],
)
def test_doctor_tells_of_a_type_that_looks_like_one_of_its_sender(hookonce, handlers, kind, meant):
    handlers(ON.format(f"'stripe', '{kind}'"))

    told = [each["text"] for each in hookonce("doctor", "--json").documents if each["check"] == "handlers"]

    assert told[1:] == (
        [f"shop_handlers.credit takes '{kind}', which no sample of stripe has; did you mean '{meant}'?"]
        if meant
        else []
    )


def test_doctor_does_not_wait_for_handlers_that_hang(hookonce, handlers, monkeypatch):
    monkeypatch.setattr(doctor_handlers, "TIME_LIMIT", timedelta(seconds=1))
    handlers("import time; time.sleep(60)")

    examined = hookonce("doctor", "--json")

    assert levels(examined)["handlers"] == "fail"
    assert any("do not import within 1 s" in each["text"] for each in examined.documents)


def test_doctor_only_warns_of_a_secret_that_a_worker_would_need(hookonce, handlers, inbox):
    handlers(ON.format("'stripe'"))
    with (inbox / "hookonce.toml").open("a") as file:
        file.write('[alerts]\nurls = ["https://alerts.example.com/in"]\nsecret = "env:NOT_HERE"\n')

    examined = hookonce("doctor", "--json")

    assert (levels(examined)["handlers"], examined.code) == ("warn", 0)


def test_doctor_names_every_missing_secret_of_alerts_where_no_handlers_are_configured(hookonce, inbox):
    with (inbox / "hookonce.toml").open("a") as file:
        file.write(
            '[alerts.slack]\nurl = "env:NOT_HERE"\n[alerts.mail]\nto = "ann@example.com"\nsmtp = "env:NOR_HERE"\n'
        )

    examined = hookonce("doctor", "--json")

    (text,) = [each["text"] for each in examined.documents if each["check"] == "handlers"]
    assert "[alerts.slack] url: NOT_HERE is not set" in text
    assert "[alerts.mail] smtp: NOR_HERE is not set" in text


URLS = {
    "public_url": ("public_url = 'https://a.example'", "ok", "verified with https://a.example/hooks/twilio"),
    "url": ("url = 'https://a.example/in/sms'", "ok", "verified with https://a.example/in/sms"),
    "reference": ("url = 'env:URL_OF_SMS'", "ok", "verified with https://[secret]@a.example/in/sms?[secret]"),
    "literal credentials": (
        "url = 'https://me:hush@a.example/in'",
        "warn",
        "https://[secret]@a.example/in: its",
    ),
    "reference to nothing": ("url = 'env:NOT_HERE'", "warn", "a receiver needs NOT_HERE"),
}


@pytest.mark.usefixtures("rings")
@pytest.mark.parametrize(("option", "level", "text"), URLS.values(), ids=URLS)
def test_doctor_says_which_url_a_source_is_verified_with(hookonce, inbox, monkeypatch, option, level, text):
    monkeypatch.setenv("URL_OF_SMS", "https://me:hush@a.example/in/sms?key=hush")
    with (inbox / "hookonce.toml").open("a") as config:
        config.write(f"[sources.twilio]\nsecrets = ['env:NOT_HERE_EITHER?']\n{option}\n")

    examined = hookonce("doctor", "--json")

    found = {each["check"]: each for each in examined.documents}["url of twilio"]
    assert (found["level"], text in found["text"]) == (level, True), found
    assert b"hush" not in examined.out
    monkeypatch.setenv("NOT_HERE", "https://a.example/in")
    listed = hookonce("sources", "list", "--json")
    assert b"https://" in listed.out
    assert b"hush" not in listed.out


@pytest.mark.usefixtures("rings")
def test_doctor_asks_for_no_secret_where_a_set_of_keys_is_fetched(hookonce, inbox):
    with (inbox / "hookonce.toml").open("a") as config:
        config.write('[sources.fireblocks]\nfireblocks = { environment = "sandbox" }\n')

    found = {each["check"]: each for each in hookonce("doctor", "--json").documents}["source fireblocks"]

    assert (found["level"], found["text"]) == ("ok", "needs no secret: its sender's keys are fetched")


@pytest.mark.usefixtures("inbox", "rings")
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("temp_file_limit", "1MB"),
        ("default_transaction_read_only", "on"),
        ("synchronous_commit", "off"),
        ("session_replication_role", "replica"),
    ],
)
def test_doctor_names_a_setting_that_nothing_can_pin(hookonce, database_url, setting, value):
    assert levels(hookonce("doctor", "--json"))["settings"] == "ok"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {setting} = '{value}'")

    found = {each["check"]: each for each in hookonce("doctor", "--json").documents}["settings"]

    assert (found["level"], f"{setting} is {value}" in found["text"]) == ("warn", True), found


@pytest.mark.usefixtures("inbox", "rings")
def test_doctor_names_who_waits_for_whom(hookonce, database_url):
    assert levels(hookonce("doctor", "--json"))["waits"] == "ok"
    with (
        psycopg.connect(database_url, application_name="report") as holder,
        psycopg.connect(database_url, application_name="late") as late,
        ThreadPoolExecutor() as threads,
    ):
        holder.execute("LOCK TABLE hookonce.alerts IN EXCLUSIVE MODE")
        threads.submit(late.execute, "LOCK TABLE hookonce.alerts IN EXCLUSIVE MODE")
        try:
            found = until(
                lambda: {
                    each["level"]: each["text"]
                    for each in hookonce("doctor", "--json").documents
                    if each["check"] == "waits"
                }.get("warn")
            )
        finally:
            holder.rollback()

    who, _, whom = found.partition(" s for ")
    assert ("('late', role" in who, "('report', role" in whom) == (True, True), found


@pytest.mark.parametrize(
    ("rows", "setting", "offered", "advice"),
    [
        (5e6, "off", ["pglz", "lz4", "zstd", "on", "off"], "'zstd'"),
        (5e6, "pglz", ["pglz", "lz4", "on", "off"], "'lz4'"),
        (5e6, "zstd", ["pglz", "lz4", "zstd", "on", "off"], None),
        (5e6, "off", ["pglz", "on", "off"], None),
        (-1, "off", ["pglz", "lz4", "zstd", "on", "off"], None),
    ],
)
def test_doctor_advises_to_compress_the_log_of_a_large_ledger(rows, setting, offered, advice):
    finding = servers.judge_log(rows, setting, offered)

    assert finding.level == ("warn" if advice else "ok")
    assert advice is None or advice in finding.text


@pytest.mark.parametrize(
    ("rows", "gigabytes", "minutes", "is_advised"),
    [(5e6, 1, 5, True), (5e6, 16, 5, True), (5e6, 1, 15, True), (5e6, 16, 15, False), (1e3, 1, 5, False)],
)
def test_doctor_advises_rare_checkpoints_for_a_large_ledger(rows, gigabytes, minutes, is_advised):
    finding = servers.judge_checkpoints(rows, 412.0, gigabytes, minutes)

    assert finding.level == ("warn" if is_advised else "ok")
    assert (
        all(name in finding.text for name in ("max_wal_size", "checkpoint_timeout", "412 MB")) == is_advised
    )


@pytest.mark.usefixtures("place")
def test_doctor_lists_mistakes_of_the_configuration(place, hookonce):
    (place / "hookonce.toml").write_text(
        '[sources.a]\nprovider = "strip"\n[sources.b]\nprovider = "githib"\n'
    )

    examined = hookonce("doctor")

    assert examined.code == 1
    assert [line.split()[0] for line in examined.lines] == ["fail", "fail"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"redis_version": "6.2.1"}, ("fail", "redis")),
        ({"redis_version": "7.2.4", "cluster_enabled": 1}, ("fail", "redis")),
        ({"redis_version": "7.2.4", "maxmemory_policy": "allkeys-lru"}, ("warn", "eviction")),
        ({"redis_version": "7.2.4", "maxmemory_policy": "volatile-ttl"}, ("ok", "eviction")),
    ],
)
def test_doctor_judges_what_redis_says_of_itself(said, expected):
    findings = list(servers.judge_redis(said))

    assert expected in [finding[:2] for finding in findings]


@pytest.mark.usefixtures("inbox", "rings")
@pytest.mark.parametrize(("conflicts", "named"), [(3, True), (2, False)])
def test_doctor_names_a_source_most_of_whose_deliveries_conflict(hookonce, ledger, conflicts, named):
    ledger.execute(
        "INSERT INTO hookonce.activity SELECT 1, date_trunc('minute', now()), 'partner', what, number "
        "FROM (VALUES ('conflict', %(n)s), ('duplicate', %(n)s), ('accepted', 1)) AS t (what, number)",
        {"n": conflicts},
    )

    examined = hookonce("doctor", "--json")

    texts = [row["text"] for row in examined.documents if row["check"] == "ids of partner"]
    assert [f"{conflicts} of {conflicts + 1} deliveries" in text for text in texts] == [True] * named
    assert all("[sources.partner] id" in text for text in texts)
