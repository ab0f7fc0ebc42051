"""How soon a saved file is in force: a time, so it is measured alone."""

import time

from tests.dev.test_reloading import FILES, HANDLERS
from tests.support.dev_stack import save, started


def test_saved_handler_is_loaded_within_a_second(data_directory):
    for name, text in FILES.items():
        (data_directory / name).write_text(text)
    with started(data_directory) as dev:
        took = []
        for version in range(2, 12):
            began = time.monotonic()
            save(dev, "handlers.py", HANDLERS.replace("VERSION", str(version)))
            dev.until("loaded +2 handlers")
            took.append(time.monotonic() - began)
            if version > 3 and min(took) < 1:
                break

        assert min(took) < 1, took
