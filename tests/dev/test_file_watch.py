"""Files that are saved at any moment of a start: none is missed."""

import os
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
