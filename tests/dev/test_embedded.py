import grp
import importlib.util
import json
import os
import pwd
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
import redis

from hookonce.receiver.config.embedded_servers import running
from hookonce.receiver.dev.embedded import EmbeddedError, Postgres, Valkey, binaries, servers
from hookonce.receiver.dev.embedded.process import INHERITED, children
from hookonce.receiver.processes.spawn import Account

ROOT = Path(__file__).parents[2]
AS_ROOT = os.geteuid() == 0
HOLDER = """
import json, os, psycopg, sys
from pathlib import Path
from hookonce.receiver.dev.embedded import servers
from hookonce.receiver.dev.embedded.process import children

directory = Path(sys.argv[1])
with servers(directory, durable=False) as found:
    with psycopg.connect(found.database_url) as connection:
        connection.execute("CREATE TABLE " + sys.argv[2] + " ()")
        connection.commit()
        pids = children(os.getpid())
        pids += [each for pid in pids for each in children(pid)]
        print(json.dumps(pids), flush=True)
        sys.stdin.read()
"""
STRANGER = """
import json, os, pwd, sys
import psycopg

user = pwd.getpwnam("nobody")
os.setgroups([])
os.setgid(user.pw_gid)
os.setuid(user.pw_uid)
done = []
for attempt in (
    lambda: psycopg.connect(sys.argv[1]),
    lambda: os.listdir(sys.argv[2]),
    lambda: os.listdir(sys.argv[2] + "/data"),
    lambda: open(f"/proc/{sys.argv[3]}/environ").read(),
    lambda: os.listdir(f"/proc/{sys.argv[3]}/cwd/"),
):
    try:
        attempt()
        done.append(True)
    except (psycopg.OperationalError, PermissionError):
        done.append(False)
print(json.dumps(done))
"""
"""What a process that runs as `nobody`, as PostgreSQL does, can do to it."""


@pytest.fixture
def empty(data_directory):
    return data_directory


@pytest.fixture(scope="module")
def place(disk):
    """A directory that already has a cluster, for all tests: making one takes longer than all else."""
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    Postgres.start(directory, durable=False).stop()
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def spoilt(place, empty):
    """A copy of that cluster, to be broken."""
    subprocess.run(["/bin/cp", "-a", place / "postgres", empty], check=True)
    return empty


@pytest.fixture
def start(place):
    """A function that starts a Postgres that is stopped after the test."""
    started = []

    def starting(directory=place, **options):
        started.append(Postgres.start(directory, **{"durable": False} | options))
        return started[-1]

    yield starting
    for each in started:
        each.stop()


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(binaries, "SYSTEM_POSTGRES", ())


def ask(url, query, *parameters):
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        cursor = connection.execute(query, parameters)
        return cursor.fetchone()[0] if cursor.description else None


def holder(directory, table, **options):
    command = [sys.executable, "-c", HOLDER, str(directory), table]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, **pipes, **options)


def as_stranger(postgres, place):
    home = str((place / "postgres").resolve())
    command = [sys.executable, "-c", STRANGER, postgres.url, home, str(postgres.pid)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def test_servers_are_running_inside_the_block_only(empty):
    with servers(empty) as found:
        state = (empty / "servers.json").stat()
        inside = running(empty)
        facts = [
            ask(found.database_url, f"SHOW {name}") for name in ("fsync", "timezone", "listen_addresses")
        ]
        database = ask(found.database_url, "SELECT current_database()")
        with redis.Redis.from_url(found.redis_url) as client:
            policy = client.config_get("maxmemory-policy")

    assert inside == found
    assert running(empty) is None
    assert not (empty / "servers.json").exists()
    assert stat.S_IMODE(state.st_mode) == 0o600
    assert (facts, database) == (["on", "UTC", ""], "hookonce")
    assert policy == {"maxmemory-policy": "noeviction"}


@pytest.mark.usefixtures("nothing_installed")
def test_given_urls_are_taken_and_nothing_is_started(empty):
    with servers(empty, database_url="postgresql://u:p@db/x", redis_url="redis://cache") as found:
        assert running(empty) == found
        assert found.database_url == "postgresql://u:p@db/x"

    assert sorted(path.name for path in empty.iterdir()) == ["servers.lock"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "started": "1", "servers": {}}']
)
def test_broken_or_stale_state_file_means_not_running(empty, content):
    (empty / "servers.json").write_text(content)

    assert running(empty) is None


def test_ledger_is_found_while_valkey_is_down(empty):
    with servers(empty) as found:
        with redis.Redis.from_url(found.redis_url) as client:
            client.shutdown(nosave=True)

        assert running(empty) == found
        assert ask(found.database_url, "SELECT 1") == 1


def test_data_outlives_stop_crash_and_stale_pid_file(start, place):
    first = start()
    ask(first.url, "CREATE TABLE outlived AS SELECT 42 AS answer")
    first.stop()
    second = start()
    second.kill(signal.SIGKILL)
    second.stop()
    stale = place / "postgres" / "data" / "postmaster.pid"
    with subprocess.Popen(["/bin/sleep", "1000"], user=stale.stat().st_uid) as stranger:
        lines = stale.read_text().splitlines()
        stale.write_text("\n".join([str(stranger.pid), *lines[1:]]))  # its id was given to another process

        third = start()

        stranger.kill()
    assert ask(third.url, "SELECT answer FROM outlived") == 42


def test_restart_keeps_data_and_url(start):
    postgres = start()
    ask(postgres.url, "CREATE TABLE restarted AS SELECT 42 AS answer")
    url, pid = postgres.url, postgres.pid

    postgres.restart()

    assert postgres.pid != pid
    assert ask(url, "SELECT answer FROM restarted") == 42


def test_restart_after_a_crash_recovers(start):
    postgres = start()
    ask(postgres.url, "CREATE TABLE recovered AS SELECT 42 AS answer")

    postgres.kill(signal.SIGKILL)
    postgres.restart()

    assert ask(postgres.url, "SELECT answer FROM recovered") == 42


def test_second_start_in_a_directory_names_the_first(start, place):
    start()

    with pytest.raises(EmbeddedError, match=f"{place} is in use by process {os.getpid()} .*HOOKONCE_DATA"):
        start()


def test_two_directories_do_not_collide(start, empty):
    first, second = start(empty / "first"), start(empty / "second")

    ask(first.url, "CREATE TABLE mine ()")

    assert ask(second.url, "SELECT to_regclass('mine')") is None


def test_killed_parent_leaves_no_server_and_no_broken_data(start, place, await_end):
    with holder(place, "killed") as parent:
        pids = json.loads(parent.stdout.readline())
        assert running(place)

        parent.kill()

        await_end(parent.pid, *pids)
    assert len(pids) > 5
    assert running(place) is None
    assert ask(start().url, "SELECT to_regclass('killed')::text") == "killed"


def test_start_waits_for_the_servers_of_a_killed_parent(start, place):
    with holder(place, "waited") as parent:
        parent.stdout.readline()
        parent.kill()
        parent.wait()

        assert ask(start().url, "SELECT to_regclass('waited')::text") == "waited"


def test_frozen_server_does_not_answer_until_thawed(start):
    postgres = start()

    postgres.kill(signal.SIGSTOP)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(0.1)
        client.connect(str(postgres.socket))
        client.sendall(bytes.fromhex("0000000804d2162f"))  # SSLRequest
        with pytest.raises(TimeoutError):
            client.recv(1)
    postgres.kill(signal.SIGCONT)

    assert ask(postgres.url, "SELECT 1") == 1


def test_valkey_restarts_empty_on_the_same_url(empty):
    valkey = Valkey.start(empty, databases=64)
    try:
        with redis.Redis.from_url(f"{valkey.url}?db=63") as client:
            client.set("key", "value")

        valkey.restart()

        with redis.Redis.from_url(f"{valkey.url}?db=63") as client:
            assert client.get("key") is None
    finally:
        valkey.stop()


def test_failed_start_shows_the_end_of_the_log(start, spoilt):
    with (spoilt / "postgres" / "data" / "postgresql.conf").open("a") as settings:
        settings.write("nonsense = 1\n")

    with pytest.raises(EmbeddedError, match=r"(?s)postgres did not start .*postgres\.log.*nonsense"):
        start(spoilt)


def test_servers_say_which_directory_can_not_be_made(tmp_path):
    (tmp_path / "file").touch()
    expected = "file/data can't be made: Not a directory; .*HOOKONCE_DATA"

    with pytest.raises(EmbeddedError, match=expected), servers(tmp_path / "file" / "data"):
        pass


def test_cluster_of_another_version_is_refused(start, spoilt):
    (spoilt / "postgres" / "data" / "PG_VERSION").write_text("13\n")

    with pytest.raises(EmbeddedError, match=r"was made by PostgreSQL 13, but .* is 18.*start afresh"):
        start(spoilt)


def test_path_too_long_for_a_socket_is_no_problem(empty):
    deep = empty / ("d" * 60) / ("e e" * 20) / "%2F'\\"

    with servers(deep, durable=False) as found:
        assert ask(found.database_url, "SELECT 1") == 1
        with redis.Redis.from_url(found.redis_url) as client:
            assert client.ping()


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
def test_data_goes_elsewhere_under_a_closed_parent(start, empty):
    closed = empty / "closed"
    closed.mkdir(0o700)

    first = start(closed / "data")
    ask(first.url, "CREATE TABLE kept ()")
    first.stop()

    assert (closed / "data" / "postgres").is_symlink()
    assert ask(start(closed / "data").url, "SELECT to_regclass('kept')::text") == "kept"


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
def test_link_to_vanished_data_is_made_anew(start, empty):
    (empty / "postgres").symlink_to(empty / "gone")

    assert ask(start(empty).url, "SELECT 1") == 1
    assert not (empty / "postgres").is_symlink()


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
def test_wheel_under_a_closed_parent_is_copied_once(start, empty, monkeypatch):
    wheel = importlib.util.find_spec(binaries.WHEEL).submodule_search_locations[0]
    closed = empty / "closed"
    closed.mkdir(0o700)
    shutil.copytree(
        wheel, closed / binaries.WHEEL, copy_function=os.symlink, ignore=shutil.ignore_patterns("include")
    )
    for library in shutil.copytree(f"{wheel}.libs", closed / f"{binaries.WHEEL}.libs").iterdir():
        library.chmod(0o600)
    monkeypatch.setattr(binaries, "_wheel", lambda _: closed / binaries.WHEEL)
    monkeypatch.setattr(binaries, "open_place", lambda _: empty)

    first, second = binaries.postgres(Account(65534, 65534)), binaries.postgres(Account(65534, 65534))

    assert first == second
    assert first.is_relative_to(empty)
    assert not first.is_relative_to(closed)
    assert ask(start().url, "SELECT 1") == 1


@pytest.mark.skipif(not AS_ROOT, reason="only root can become someone else")
def test_ordinary_user_runs_both_servers(empty, await_end):
    nobody = pwd.getpwnam("nobody")
    account = Account(nobody.pw_uid, nobody.pw_gid)
    if not all(binaries.reachable(path, account) for path in (Path(sys.executable).resolve().parent, ROOT)):
        pytest.skip("no other user can reach this Python")
    os.chown(empty, *account)

    with holder(empty, "ordinary", user=account.uid, group=account.gid, extra_groups=[]) as parent:
        pids = json.loads(parent.stdout.readline())
        parent.stdin.close()

    await_end(*pids)
    assert parent.returncode == 0
    assert (empty / "postgres" / "data").owner() == "nobody"


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
@pytest.mark.parametrize("parts", [(), ("d" * 60, "e" * 40)], ids=["plain", "too long for a socket"])
def test_other_processes_of_the_servers_user_get_nothing(start, empty, parts):
    place = empty.joinpath(*parts)

    postgres = start(place)

    assert as_stranger(postgres, place) == [False] * 5
    assert ask(postgres.url, "SELECT 1") == 1


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
def test_data_that_was_open_to_the_servers_user_is_closed(start, spoilt):
    account = pwd.getpwnam("nobody")
    for each in (spoilt / "postgres", *(spoilt / "postgres").rglob("*")):
        os.chown(each, account.pw_uid, account.pw_gid)
    (spoilt / "postgres").chmod(0o700)  # as 0.1 left it

    postgres = start(spoilt)

    assert as_stranger(postgres, spoilt) == [False] * 5
    assert ask(postgres.url, "SELECT 1") == 1


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
def test_group_of_the_data_stays_what_it_is_and_is_nobody_elses(start, place, empty):
    groups = []
    for directory in (place, place, empty):
        start(directory).stop()
        groups.append((directory / "postgres").stat().st_gid)

    assert groups[0] == groups[1] != groups[2]
    assert not {*groups} & {each.gr_gid for each in grp.getgrall()}


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
def test_data_of_an_ordinary_user_stays_theirs(start, spoilt):
    for each in (spoilt / "postgres", *(spoilt / "postgres").rglob("*")):
        os.chown(each, 1, 1)
    (spoilt / "postgres").chmod(0o700)

    assert ask(start(spoilt).url, "SELECT 1") == 1

    assert (spoilt / "postgres").stat().st_uid == 1


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows a process' environment")
def test_servers_get_none_of_our_environment_but_what_they_need(start, place, monkeypatch):
    monkeypatch.setenv("STRIPE_WEBHOOK_SECRET", "whsec_of_the_tests")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hush@db/x")
    postgres, valkey = start(), Valkey.start(place)

    pids = [valkey.pid, postgres.pid, *children(postgres.pid)]
    found = [Path(f"/proc/{pid}/environ").read_bytes() for pid in pids]
    valkey.stop()

    names = {line.partition(b"=")[0].decode() for each in found for line in each.split(b"\0") if b"=" in line}
    assert {"PATH", "TZ"} <= names <= {*INHERITED, "LC_ALL", "TZ", "PGLOCALEDIR", "PG_GRANDPARENT_PID"}
    assert all(b"whsec_of_the_tests" not in each and b"hush" not in each for each in found)


def test_socket_and_state_of_valkey_are_ours_alone(empty):
    with servers(empty, durable=False) as found:
        paths = [empty / name for name in ("servers.json", "valkey.conf", "valkey.log", "postgres.log")]
        paths += [empty / f"{name}.lock" for name in ("servers", "valkey", "postgres")]
        socket_path = Path(found.redis_url.removeprefix("unix://"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}

        assert set(modes.values()) == {0o600}, modes
        assert stat.S_IMODE(socket_path.stat().st_mode) == 0o700
        assert socket_path.stat().st_uid == os.geteuid()


def test_user_without_a_name_is_told_what_to_do(start, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 2**31 - 5)

    with pytest.raises(EmbeddedError, match=r"refuses to run as user 2147483643.*set DATABASE_URL"):
        start()


@pytest.mark.parametrize(
    ("find", "expected"),
    [
        (lambda: binaries.postgres(None), "no PostgreSQL found; set DATABASE_URL, or `pip install 'hookonce"),
        (binaries.valkey, "no Valkey or Redis found; set REDIS_URL, or `pip install 'hookonce"),
    ],
)
@pytest.mark.usefixtures("nothing_installed")
def test_missing_server_says_what_to_install(find, expected):
    with pytest.raises(EmbeddedError, match=expected.replace("[", r"\[")):
        find()


@pytest.mark.usefixtures("nothing_installed")
def test_newest_complete_system_server_is_found(monkeypatch, tmp_path):
    for version, programs in {
        "9": ["postgres", "initdb"],
        "15": ["postgres", "initdb"],
        "16": ["initdb"],
    }.items():
        (tmp_path / version / "bin").mkdir(parents=True)
        for name in programs:
            (tmp_path / version / "bin" / name).touch(0o755)
    monkeypatch.setattr(binaries, "SYSTEM_POSTGRES", (f"{tmp_path.relative_to('/')}/*",))

    assert binaries.postgres(None) == tmp_path / "15" / "bin"


def test_redis_server_on_the_path_is_found_and_run_by_that_name(monkeypatch, empty):
    one_program = '#!/bin/sh\ncase $0 in */redis-server) exec {} "$@" ;; *) exit 1 ;; esac\n'
    (empty / "redis-check-rdb").write_text(
        one_program.format(shlex.quote(str(binaries.valkey())))
    )  # as Debian has it
    (empty / "redis-check-rdb").chmod(0o755)
    (empty / "redis-server").symlink_to("redis-check-rdb")
    monkeypatch.setattr(binaries, "_wheel", lambda _: None)
    monkeypatch.setenv("PATH", os.path.relpath(empty))

    valkey = Valkey.start(empty / "data")

    try:
        with redis.Redis.from_url(valkey.url) as client:
            assert client.ping()
    finally:
        valkey.stop()


@pytest.mark.skipif(not AS_ROOT, reason="only root starts PostgreSQL as someone else")
def test_copy_is_never_kept_where_others_could_change_it(empty, monkeypatch):
    (empty / "hookonce").mkdir()
    (empty / "hookonce").chmod(0o777)
    monkeypatch.setattr(binaries, "Path", lambda _: empty)

    with pytest.raises(EmbeddedError, match="no directory is open to the user that PostgreSQL runs as"):
        binaries.open_place(binaries.OTHERS)


def test_children_of_a_vanished_process_are_none():
    assert children(2**22) == []
