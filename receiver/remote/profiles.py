"""The tokens of people who have logged in to other inboxes, on their own machine.

`{"profiles": {"inbox.example": {"url": "https://inbox.example", "token": "hko_…"}}}` in `profiles.json` of the user's
configuration folder, for its owner alone (mode 0600), and written whole or not at all. No token is ever an argument of
a command, where everybody on the machine would see it.
"""

import fcntl
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from hookonce.receiver.remote.addresses import address
from hookonce.receiver.remote.errors import BadAddress, BadProfiles, NoProfile

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_TOKEN = re.compile(r"hko_[A-Za-z0-9_-]{43}")
_FILE = "profiles.json"
_MOST = 1 << 20
"""Bytes of the file; a longer one is not ours."""


@dataclass(frozen=True, slots=True)
class Profile:
    """An inbox, by the name that it has on this machine, and the token to ask it with."""

    name: str
    url: str
    token: str = field(repr=False)


def folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's configuration folder: below $XDG_CONFIG_HOME, or ~/.config."""
    return _folder(environ.get("XDG_CONFIG_HOME", ""), ".config")


def state_folder() -> Path:
    """Return the folder of what the user's commands remember: below $XDG_STATE_HOME, or ~/.local/state."""
    return _folder(os.environ.get("XDG_STATE_HOME", ""), ".local/state")


def _folder(given: str, usual: str) -> Path:
    return (Path(given) if os.path.isabs(given) else Path.home() / usual) / "hookonce"  # noqa: PTH117  of a str


def usual_name(url: str) -> str:
    """Return what a profile is called unless somebody says otherwise: the host, and the port if there is one."""
    return re.sub(r"[^a-z0-9._-]+", "-", urlsplit(url).netloc).strip("-._")[:63] or "inbox"


def is_token(text: str) -> bool:
    """Return whether a text has the form of an API token."""
    return _TOKEN.fullmatch(text) is not None


def listing(place: Path | None = None) -> list[Profile]:
    """Return the profiles by name. Raises: `BadProfiles`."""
    return sorted(_read(place or folder()).values(), key=lambda profile: profile.name)


def find(named: str, place: Path | None = None) -> Profile:
    """Return the profile of that name, or of that URL. Raises: `NoProfile`, `BadProfiles`, `BadAddress`."""
    known = _read(place or folder())
    if named in known:
        return known[named]
    if "://" not in named:
        listed = f"; there are {', '.join(sorted(known))}" if known else ""
        raise NoProfile(f"no profile is called {named!r}{listed}; `hookonce login URL` makes one")
    url = address(named)
    found = [profile for profile in known.values() if profile.url == url]
    if not found:
        raise NoProfile(f"nobody has logged in to {url} here; run `hookonce login {url}`")
    if len(found) > 1:
        names = ", ".join(sorted(profile.name for profile in found))
        raise NoProfile(f"{url} has several profiles; name one of {names} instead of the URL")
    return found[0]


def save(profile: Profile, place: Path | None = None) -> None:
    """Keep a profile, instead of one of the same name. Raises: `BadProfiles`, `BadAddress`, OSError."""
    if not NAME.fullmatch(profile.name):
        raise BadProfiles(f"{profile.name!r} is no name of a profile; expected up to 63 of a-z 0-9 . _ -")
    if address(profile.url) != profile.url or not is_token(profile.token):
        raise BadProfiles("a profile has an address and a token of the form hko_…")
    with _changed(place or folder()) as known:
        known[profile.name] = profile


def remove(named: str, place: Path | None = None) -> Profile:
    """Forget a profile, by its name or URL, and return it. Raises: `NoProfile`, `BadProfiles`, `BadAddress`."""
    with _changed(place or folder()) as known:
        found = find(named, place)
        del known[found.name]
    return found


def _read(place: Path) -> dict[str, Profile]:
    path = place / _FILE
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            content = file.read(_MOST + 1)
    except FileNotFoundError:
        return {}
    if about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077:
        raise BadProfiles(
            f"{path} can be read by others than you, and holds tokens; run chmod 600 on it, and revoke them"
        )
    try:
        profiles = json.loads(content)["profiles"]
        found = {name: Profile(name, address(kept["url"]), kept["token"]) for name, kept in profiles.items()}
        is_right = all(is_token(profile.token) and NAME.fullmatch(profile.name) for profile in found.values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, BadAddress):
        is_right = False
    if not is_right:
        raise BadProfiles(f"{path} can't be read; move it away, and run `hookonce login` again")
    return found


@contextmanager
def _changed(place: Path) -> Iterator[dict[str, Profile]]:
    """Give the profiles to be changed, and write them; whoever else changes them waits."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (place / f"{_FILE}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _read(place)
        yield known
        shown = {name: {k: v for k, v in asdict(each).items() if k != "name"} for name, each in known.items()}
        write_whole(place / _FILE, json.dumps({"profiles": shown}, indent=2) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file for its owner alone, whole or not at all, even if the machine stops. Raises: OSError naming it."""
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(unfinished).replace(path)
    except OSError as error:
        Path(unfinished).unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
