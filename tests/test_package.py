"""The wheel, beside an application that has packages called `jobs`, `providers` and `receiver` of its own."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import pointers
from tests.support.type_checker import mypy

ROOT = Path(__file__).parents[1]
APPLICATION = {
    "jobs/__init__.py": "",
    "jobs/tasks.py": "def book(amount):\n    return f'booked {amount}'\n",
    "providers/__init__.py": "NAMES = ['theirs']\n",
    "receiver/__init__.py": "def receive():\n    return 'theirs'\n",
    "wsgi.py": "import receiver\n\n\ndef application():\n    return receiver.receive()\n",
    "handlers.py": (
        "from hookonce import GiveUp, RetryLater, on\n"
        "from jobs.tasks import book\n"
        "\n\n"
        "@on('stripe', 'invoice.paid')\n"
        "def credit(event, tx):\n"
        "    return book(event.data['amount'])\n"
    ),
}
RUNS = """
import sys
from types import SimpleNamespace

import hookonce, jobs, providers, receiver, wsgi
from hookonce.jobs.registration import import_handlers
from hookonce.providers.kit.registry import load
from hookonce.receiver.app import create_app
from hookonce.receiver.cli import COMMANDS

site, place = sys.argv[1:]
assert hookonce.__file__.startswith(site), hookonce.__file__
assert all(module.__file__.startswith(place) for module in (jobs, providers, receiver, wsgi))
assert wsgi.application() == "theirs" and providers.NAMES == ["theirs"]
(handler,) = import_handlers(["handlers"])
print(handler.function(SimpleNamespace(data={"amount": 3}), None), load("stripe").name)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What a wheel puts into an environment."""
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = place.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(place / "site")
    return place / "site"


@pytest.mark.parametrize("is_ours_first", [True, False])
def test_wheel_and_an_application_with_the_same_names_leave_each_other_alone(tmp_path, site, is_ours_first):
    for name, text in APPLICATION.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    order = [site, tmp_path] if is_ours_first else [tmp_path, site]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, order)), "PYTHONSAFEPATH": "1"}

    done = subprocess.run(
        [sys.executable, "-c", RUNS, site, tmp_path],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "booked 3 stripe\n", done.stderr


def test_handlers_pass_a_strict_type_checker(tmp_path):
    (tmp_path / "handlers.py").write_text(
        "from datetime import timedelta\n\n"
        "from sqlalchemy import Connection, text\n\n"
        "from hookonce import GiveUp, ReceivedEvent, RetryLater, on\n\n\n"
        "@on('stripe', 'invoice.*', attempts=3, timeout=timedelta(seconds=5))\n"
        "def credit(event: ReceivedEvent, tx: Connection) -> dict[str, str]:\n"
        "    if event.attempt > 2:\n"
        "        raise GiveUp('no such customer')\n"
        "    if event.type == 'invoice.created':\n"
        "        raise RetryLater(timedelta(minutes=5))\n"
        "    tx.execute(text('SELECT 1'))\n"
        "    return {'credited': event.event_id}\n"
    )

    assert mypy(tmp_path, "handlers.py") == (0, [])


def test_wheel_carries_the_pages_and_few_bytes_of_them(site):
    pages = list((site / "hookonce/docs").rglob("*.md"))

    assert {"index.md", "alerts.md", "guarantees.md", "configuration.md"} <= {each.name for each in pages}
    assert sum(each.stat().st_size for each in pages) < 1_200_000


def test_pages_of_the_wheel_say_nothing_in_brackets_but_why(site):
    bare = {
        page.name: re.findall(r"\((?:and )?(?:why|how)\)", page.read_text())
        for page in (site / "hookonce/docs").rglob("*.md")
    }

    assert {name: asides for name, asides in bare.items() if asides} == {}


def test_pages_of_the_wheel_link_to_what_it_carries(site):
    broken = {page.name: pointers.broken_links(page) for page in (site / "hookonce/docs").rglob("*.md")}

    assert {name: links for name, links in broken.items() if links} == {}
