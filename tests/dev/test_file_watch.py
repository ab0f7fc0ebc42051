"""Files that are saved at any moment of a start: none is missed."""

import os
import threading
import time

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
