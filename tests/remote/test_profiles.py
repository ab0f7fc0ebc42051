import os
import stat
from functools import partial

import pytest

from hookonce.receiver.remote import profiles
from hookonce.receiver.remote.addresses import address
from hookonce.receiver.remote.errors import BadAddress, BadProfiles, NoProfile
from hookonce.receiver.remote.profiles import Profile
from tests.support.waiting import at_once

TOKEN = "hko_" + "a" * 43


def saved(place, name="prod", url="https://inbox.example", token=TOKEN):
    profiles.save(Profile(name, url, token), place)


def test_profile_is_found_by_name_and_by_url(tmp_path):
    saved(tmp_path)

    assert profiles.find("prod", tmp_path) == profiles.find("https://INBOX.example:443/", tmp_path)
    assert profiles.find("prod", tmp_path).token == TOKEN


def test_file_is_for_its_owner_alone_whatever_the_umask_is(tmp_path):
    before = os.umask(0)
    try:
        saved(tmp_path / "new")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "new" / "profiles.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_token_is_in_no_representation_of_a_profile():
    assert TOKEN not in repr(Profile("prod", "https://inbox.example", TOKEN))


def test_file_that_others_can_read_is_not_used(tmp_path):
    saved(tmp_path)
    (tmp_path / "profiles.json").chmod(0o640)

    with pytest.raises(BadProfiles, match="chmod 600"):
        profiles.find("prod", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"profiles": {"a": {"url": "http://a.example", "token": "x"}}}',
        '{"profiles": 1}',
        "[" * 9000,
    ],
)
def test_damaged_file_is_one_line_and_is_not_written_over(tmp_path, content):
    path = tmp_path / "profiles.json"
    path.write_text(content)
    path.chmod(0o600)

    for use in (lambda: profiles.listing(tmp_path), lambda: saved(tmp_path)):
        with pytest.raises(BadProfiles, match="move it away"):
            use()

    assert path.read_text() == content


def test_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    saved(tmp_path)

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left.*profiles\.json"):
        saved(tmp_path, "other")

    assert [each.name for each in profiles.listing(tmp_path)] == ["prod"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["profiles.json", "profiles.json.lock"]


def test_profiles_that_are_saved_at_once_are_all_kept(tmp_path):
    at_once(*(partial(saved, tmp_path, f"p{n}") for n in range(12)))

    assert len(profiles.listing(tmp_path)) == 12


def test_profile_that_is_unknown_says_how_to_make_one(tmp_path):
    saved(tmp_path)

    with pytest.raises(NoProfile, match="there are prod"):
        profiles.find("stage", tmp_path)
    with pytest.raises(NoProfile, match=r"hookonce login https://other\.example"):
        profiles.find("https://other.example", tmp_path)


def test_url_of_two_profiles_asks_for_a_name(tmp_path):
    saved(tmp_path)
    saved(tmp_path, "second")

    with pytest.raises(NoProfile, match="prod, second"):
        profiles.find("https://inbox.example", tmp_path)


def test_removed_profile_is_gone(tmp_path):
    saved(tmp_path)

    assert profiles.remove("prod", tmp_path).url == "https://inbox.example"
    assert profiles.listing(tmp_path) == []


def test_folder_is_below_an_absolute_configuration_home_only(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")

    assert str(profiles.folder({"XDG_CONFIG_HOME": "/elsewhere"})) == "/elsewhere/hookonce"
    assert str(profiles.folder({"XDG_CONFIG_HOME": "relative"})) == "/home/ada/.config/hookonce"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("https://Inbox.Example/", "https://inbox.example"),
        ("https://inbox.example:443/in/box/", "https://inbox.example/in/box"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
        ("http://localhost", "http://localhost"),
    ],
)
def test_address_is_kept_in_one_spelling(typed, kept):
    assert address(typed) == kept


@pytest.mark.parametrize(
    "url",
    [
        "inbox.example",
        "http://inbox.example",
        "http://127.0.0.1.example",
        "http://localhost.example",
        "http://10.0.0.1",
        "http://2130706433",
        "ftp://inbox.example",
        "https://",
        "https://user:hidden@inbox.example",
        "http://localhost@inbox.example",
        "https://inbox.example/?a=b",
        "https://inbox.example/#a",
        "https://inbox.example:port",
        "https://inbox.example/\x1b[31m",
        "https://[::1",
    ],
)
def test_address_that_may_not_have_a_token_is_refused_on_one_line(url):
    with pytest.raises(BadAddress) as refused:
        address(url)

    assert str(refused.value).isprintable()
    assert "hidden" not in str(refused.value)
