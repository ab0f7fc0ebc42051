"""Files that are saved at any moment of a start: none is missed."""

import os
import shutil
import threading
import time

from hookonce.receiver.dev import file_watch
from hookonce.receiver.dev.file_watch import changes


def test_what_was_saved_before_anything_was_watched_is_told_first(tmp_path):
    (tmp_path / "shop").mkdir()
    for name in ("old.py", "shop/saved.py", "read.txt", ".env"):
        (tmp_path / name).write_text("")
    since = time.time() - 60
    for name in ("old.py", ".env"):
        os.utime(tmp_path / name, (since - 1, since - 1))
    told = changes(tmp_path, set(), threading.Event(), since)

    assert next(told) == {tmp_path / "shop" / "saved.py"}

    threading.Timer(0.5, (tmp_path / "old.py").write_text, ["1"]).start()
    assert next(told) == {tmp_path / "old.py"}


def test_folder_that_comes_later_is_told_with_its_files_once(tmp_path):
    ended = threading.Event()
    told = changes(tmp_path, set(), ended, time.time())

    def add():
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "new.py").write_text("")

    threading.Timer(0.5, add).start()
    assert next(told) == {tmp_path / "later" / "new.py"}

    threading.Timer(3, ended.set).start()
    assert list(told) == []


def test_folder_that_is_made_anew_by_its_old_name_is_watched(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    ended = threading.Event()
    told = changes(tmp_path, set(), ended, time.time())

    def make_anew():
        folder.rmdir()
        folder.mkdir()
        (folder / "new.py").write_text("")

    threading.Timer(1.5, make_anew).start()
    assert next(told) == {folder / "new.py"}

    threading.Timer(0.5, (folder / "new.py").write_text, ["1"]).start()
    assert next(told) == {folder / "new.py"}


def test_folders_are_not_listed_while_nothing_changes(tmp_path, monkeypatch):
    (tmp_path / "shop" / "__pycache__").mkdir(parents=True)
    listed, folders = [], file_watch.folders
    monkeypatch.setattr(file_watch, "folders", lambda root: listed.append(root) or folders(root))
    ended = threading.Event()
    threading.Timer(4, ended.set).start()

    assert list(changes(tmp_path, set(), ended, time.time())) == []

    assert len(listed) == 2  # before it is watched, and once more when it is


def test_watch_goes_on_while_folders_come_and_go(tmp_path):
    ended, stopped = threading.Event(), threading.Event()
    (tmp_path / "saved.py").write_text("")
    told = changes(tmp_path, set(), ended, time.time())

    def churn():
        for number in range(40):
            places = [tmp_path / f"{number}_{each}" for each in range(8)]
            for place in places:
                (place / "below").mkdir(parents=True)
            time.sleep(0.002 * (number % 20))
            for place in places:
                shutil.rmtree(place)
        (tmp_path / "saved.py").write_text("1")
        stopped.set()

    threading.Thread(target=churn).start()

    assert next(told) == {tmp_path / "saved.py"}
    assert stopped.is_set()


def test_watch_goes_on_after_names_that_are_no_utf8(tmp_path):
    (tmp_path / os.fsdecode(b"\xfe")).mkdir()
    told = changes(tmp_path, set(), threading.Event(), time.time())

    def save():
        (tmp_path / os.fsdecode(b"\xff.py")).write_text("")
        time.sleep(1)
        (tmp_path / "saved.py").write_text("1")

    threading.Timer(0.5, save).start()
    found = set()
    while tmp_path / "saved.py" not in found:
        found |= next(told)


def test_link_to_nothing_hides_no_file_that_was_saved_before(tmp_path):
    since = time.time() - 60
    for number in range(3):
        (tmp_path / f".#{number}.py").symlink_to("nobody@nowhere.1")
        (tmp_path / f"{number}.py").write_text("")

    assert next(changes(tmp_path, set(), threading.Event(), since)) == {
        tmp_path / f"{number}.py" for number in range(3)
    }


def test_tree_that_replaces_another_is_told_with_all_its_files(tmp_path):
    for tree in ("shop", "next"):
        (tmp_path / tree / "below").mkdir(parents=True)
        (tmp_path / tree / "below" / "saved.py").write_text(tree)
    outside = tmp_path.with_name("outside")
    (tmp_path / "next").rename(outside)
    os.utime(outside / "below" / "saved.py", (1, 1))
    told = changes(tmp_path, set(), threading.Event(), time.time() + 1)

    def replace():
        (tmp_path / "shop").rename(outside.with_name("old"))
        outside.rename(tmp_path / "shop")

    threading.Timer(1.5, replace).start()

    assert next(told) == {tmp_path / "shop" / "below" / "saved.py"}
