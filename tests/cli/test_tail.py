import json
import signal
import subprocess
import sys
from subprocess import PIPE

import pytest

from tests.support.outcomes import put_into_state

pytestmark = pytest.mark.usefixtures("inbox")


def test_tail_shows_what_comes_and_what_becomes_of_it_until_ctrl_c(inbox, stored, ledger):
    stored("evt_0")
    stored("evt_1")
    command = [sys.executable, "-m", "hookonce.receiver.cli", "tail", "--json", "--last", "1"]
    with subprocess.Popen(command, cwd=inbox, stdout=PIPE, stderr=PIPE, text=True) as process:

        def next_line():
            event = json.loads(process.stdout.readline())
            return event["event_id"], event["status"]

        seen = [next_line()]
        number = stored("evt_2")
        seen.append(next_line())
        ledger.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                       " AND datname = current_database()")  # fmt: skip
        put_into_state(ledger, number, "done")
        seen.append(next_line())
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=60)

    assert seen == [("evt_1", "received"), ("evt_2", "received"), ("evt_2", "done")]
    assert (process.returncode, rest) == (0, "")
    assert said.startswith("the database is away")
