"""A private PostgreSQL for development, demo and tests, on a unix socket that only we can open.

It trusts whoever opens the socket, so the directory of socket and data is closed to all but its user. It refuses to
run as root, so root starts it as `nobody` (or as the ordinary user who owns existing data). Others may run as `nobody`
too: a password would not stop them, for who owns the data can rewrite `pg_hba.conf`, and who has the uid can trace the
process. So the server runs in a group that nobody else is in; the directory belongs to root and this group, and Linux
lets a process be traced, or its environment be read, only by one of the same group as well. What another process of
`nobody` still can do is to kill the server. A directory that 0.1 left open is closed at the next start.

The user must be able to reach the data. Under a closed parent (a checkout in root's home) the data goes to
/var/lib/hookonce instead and `postgres` in the data directory is a link to it, which remembers the choice for the next
start; who removes the one has to remove the other.
"""

import grp
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from hookonce.receiver.dev.embedded import binaries
from hookonce.receiver.dev.embedded.errors import EmbeddedError
from hookonce.receiver.dev.embedded.process import Lock, Process, Server, prepare
from hookonce.receiver.processes.spawn import Account

NAME = "hookonce"  # of the database and of its owner
MAX_SOCKET_PATH = 103  # bytes; macOS allows 103, Linux 107
PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
PRIVATE_GROUPS = range(61184, 65520)
"""Group ids that no distribution gives to a group with a name; systemd takes those of its transient users here too."""
INITDB = ("--auth-local=trust", "--auth-host=scram-sha-256", "--locale=C", "--encoding=UTF8", "--no-sync")
SETTINGS = {
    "timezone": "UTC",
    "log_timezone": "UTC",
    "max_connections": "100",
    "unix_socket_permissions": "0700",  # access is by trust; see above who gets as far as this
    "log_checkpoints": "off",
    "dynamic_shared_memory_type": "mmap",  # files in the closed data directory: others of nobody can read /dev/shm
}
FORGETFUL = {"fsync": "off", "full_page_writes": "off"}  # synchronous_commit stays: a kill must lose nothing
FAST, IMMEDIATE = signal.SIGINT, signal.SIGQUIT


_HAS_PATH = """
SELECT FROM pg_db_role_setting AS s JOIN pg_database AS d ON d.oid = s.setdatabase
WHERE d.datname = %s AND s.setrole = 0 AND 'search_path=public' = ANY(s.setconfig)
"""
"""One that is restored from a backup has it, and takes no writes at first."""


class Postgres(Server):
    """A PostgreSQL server that we started; made by `Postgres.start`, ended by `stop` or with our process."""

    SHUTDOWN_STEPS = (
        (FAST, timedelta(seconds=20)),
        (IMMEDIATE, timedelta(seconds=5)),
        (signal.SIGKILL, timedelta(seconds=5)),
    )

    def __init__(self, directory: Path, *, durable: bool, programs: Path | None) -> None:
        self._directory = prepare(directory)
        self._durable = durable
        self._lock = Lock(self._directory / "postgres.lock")
        try:
            self.account = _account(self._directory / "postgres")
            """Whom the server runs as; None is ourselves. Only so a program of PostgreSQL's reaches its socket."""
            self._bin = programs or binaries.postgres(self.account)
            self._home = _home(self._directory / "postgres", self.account)
            self._sockets = self._socket_directory()
            self._make_cluster()
            self._process = self._launch()
        except BaseException:
            self._leave()
            raise

    @classmethod
    def start(cls, directory: Path, *, durable: bool = True, programs: Path | None = None) -> Self:
        """Start a server on this directory's cluster, made first if there is none; return when it answers.

        `durable=False` turns fsync off, for tests: a crash of the machine, not of the process, may lose data.
        `programs` is a directory with those of another PostgreSQL than `binaries` finds. Call it from a thread that
        lives as long as the server shall.

        Raises:
            EmbeddedError: no PostgreSQL is installed, the directory is in use, or the server does not start.

        """
        return cls(directory, durable=durable, programs=programs)

    @property
    def url(self) -> str:
        """The libpq URL of the database, over the unix socket."""
        return f"postgresql://{NAME}@/{NAME}?host={quote(str(self._sockets))}"

    @property
    def socket(self) -> Path:
        """The path of the unix socket."""
        return self._sockets / SOCKET_NAME

    def restart(self) -> None:
        """Stop the server if it runs and start it again: same data, same URL."""
        self._process.stop(self.SHUTDOWN_STEPS)
        self._lock.release()
        self._lock.acquire()  # when the last of its processes has gone
        self._process = self._launch()

    def _socket_directory(self) -> Path:
        longest = self._home / SOCKET_NAME
        if len(os.fsencode(longest)) <= MAX_SOCKET_PATH:
            return self._home
        self._short = Path(tempfile.mkdtemp(prefix="hookonce-", dir="/tmp"))
        _give(self._short, self.account)
        return self._short

    def _make_cluster(self) -> None:
        data, unfinished = self._home / "data", self._home / "data.new"
        if data.exists():
            return self._check_version(data)
        shutil.rmtree(unfinished, ignore_errors=True)  # of a start that was killed
        argv = [str(self._bin / "initdb"), "-D", str(unfinished), "-U", NAME, *INITDB, "--no-instructions"]
        self._run(argv, signal.SIGKILL).run()
        unfinished.rename(data)
        return None

    def _check_version(self, data: Path) -> None:
        made_by = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        version = subprocess.check_output([self._bin / "postgres", "--version"], text=True)  # noqa: S603  # ours
        if version.split()[2].partition(".")[0] != made_by:
            raise EmbeddedError(
                f"{data} was made by PostgreSQL {made_by}, but {self._bin} is {version.split()[2]}; "
                f"remove {data} to start afresh, or run that version on it yourself and set DATABASE_URL"
            )

    def _launch(self) -> Process:
        data = self._home / "data"
        # We hold the lock: what is there is stale, its id maybe reused.
        (data / "postmaster.pid").unlink(missing_ok=True)
        where = {"unix_socket_directories": str(self._sockets), "listen_addresses": "", "port": str(PORT)}
        settings = SETTINGS | where | ({} if self._durable else FORGETFUL)
        options = [f"--{name}={value}" for name, value in settings.items()]
        process = self._run([str(self._bin / "postgres"), "-D", str(data), *options], FAST)
        return process.wait_until(self._ready)

    def _run(self, argv: list[str], on_death: signal.Signals) -> Process:
        log = self._directory / "postgres.log"
        return Process(argv, log=log, lock=self._lock, on_death=on_death, account=self.account)

    def _ready(self) -> bool:
        """Whether the server takes connections; if it does, create the database."""
        if not self.socket.exists():
            return False
        try:
            connection = psycopg.connect(
                host=str(self._sockets), port=PORT, user=NAME, dbname="postgres", autocommit=True
            )
        except psycopg.OperationalError:
            return False
        with connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [NAME]).rowcount:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
            if not connection.execute(_HAS_PATH, [NAME]).rowcount:
                # The role is called like the ledger's schema, where its default search path would lead handlers.
                path = sql.SQL("ALTER DATABASE {} SET search_path = public")
                connection.execute(path.format(sql.Identifier(NAME)))
        return True


def _account(home: Path) -> Account | None:
    """Return whom the server must run as; None is ourselves."""
    if os.geteuid() != 0:
        _must_have_a_name(os.geteuid())
        return None
    try:
        nobody = pwd.getpwnam("nobody").pw_uid
    except KeyError:
        raise EmbeddedError(
            "PostgreSQL refuses to run as root and there is no user 'nobody' to run it as; "
            "use another user, or set DATABASE_URL"
        ) from None
    if not home.exists():
        return Account(nobody, _unused_group())
    owner = home.stat()
    if owner.st_uid not in {0, nobody}:
        return Account(owner.st_uid, owner.st_gid)
    return Account(nobody, owner.st_gid if owner.st_gid in PRIVATE_GROUPS else _unused_group())


def _unused_group() -> int:
    while True:
        gid = secrets.choice(PRIVATE_GROUPS)
        try:
            grp.getgrgid(gid)
        except KeyError:
            return gid


def _must_have_a_name(uid: int) -> None:
    try:
        pwd.getpwuid(uid)
    except KeyError:  # docker run --user 1234
        raise EmbeddedError(
            f"PostgreSQL refuses to run as user {uid}, who has no name; add one to /etc/passwd, or set DATABASE_URL"
        ) from None


def _home(home: Path, account: Account | None) -> Path:
    """Return the directory of cluster and socket: `home`, or where it links to because of a closed parent."""
    if not home.exists():
        home.unlink(missing_ok=True)  # a link whose target is gone
        if binaries.reachable(home.parent, account):
            home.mkdir(mode=0o700)
        else:
            home.symlink_to(tempfile.mkdtemp(prefix="data-", dir=binaries.open_place(account)))
    home = home.resolve()
    _give(home, account)
    if not binaries.reachable(home, account):
        raise EmbeddedError(f"the owner of {home} cannot reach it; remove it or open its parents")
    return home


def _give(directory: Path, account: Account | None) -> None:
    """Let the account work in a directory of ours, and nobody else, whatever they run as."""
    if account is None:
        return
    if account.gid in PRIVATE_GROUPS:
        os.chown(directory, 0, account.gid)
        directory.chmod(0o770)
    else:
        os.chown(directory, account.uid, account.gid)
