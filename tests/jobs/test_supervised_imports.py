"""What the user writes is imported where it runs: a fork survives neither its threads nor its connections."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SECONDS = 60
NOTES = "import os, pathlib; pathlib.Path('imported').open('a').write(f'{what} {{os.getppid()}}\\n')\n"
PROVIDER = "from hookonce.providers.stripe import events, scheme, sender\n"
CONFIGURATION = """
[receiver]
providers = ["places"]
handlers = ["handlers"]

[sources.acme]
provider = "acme"
secrets = ["env:ACME_SECRET"]
"""


@pytest.mark.usefixtures("inbox")
@pytest.mark.parametrize(("options", "least"), [(["--processes", "2"], 3), (["--reloading"], 2)])
def test_supervisor_of_workers_imports_neither_handlers_nor_providers(
    database_url, redis_url, tmp_path, options, least
):
    (tmp_path / "places").mkdir()
    (tmp_path / "places" / "acme.py").write_text(NOTES.format(what="provider") + PROVIDER)
    (tmp_path / "handlers.py").write_text(NOTES.format(what="handlers"))
    (tmp_path / "hookonce.toml").write_text(CONFIGURATION)
    environ = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "ACME_SECRET": "whsec_x",
        "PYTHONPATH": str(ROOT),
    }
    worker = subprocess.Popen(
        [sys.executable, "-m", "hookonce.receiver.cli", "worker", *options],
        cwd=tmp_path,
        env=os.environ | environ,
    )

    def imports():
        found = (tmp_path / "imported").read_text().split()
        return found if found.count("provider") >= least and "handlers" in found else None

    try:
        found = until(imports, seconds=SECONDS, away=FileNotFoundError, process=worker)
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(SECONDS)

    assert set(found) == {"provider", "handlers", str(worker.pid)}
