"""A dashboard of RQ's shows what a worker is at, and what is dead."""

import subprocess
import sys
import threading

import pytest
import redis

from hookonce.jobs.handlers import GiveUp
from hookonce.jobs.mirror import Mirror
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.worker import Worker
from tests.e2e.conftest import chromium, picture
from tests.support.inbox import inbox
from tests.support.ports import free_ports
from tests.support.waiting import until

__all__ = ["inbox", "picture"]

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra e2e")
pytest.importorskip("rq_dashboard", reason="needs the extra e2e")


@pytest.fixture
def dashboard(redis_url):
    """The pages of RQ's dashboard, in a browser."""
    [port] = free_ports(1)
    command = [sys.executable, "-m", "rq_dashboard", "--redis-url", redis_url, "--json"]
    address = ["--bind", "127.0.0.1", "--port", str(port), "--interval", "500"]
    with (
        subprocess.Popen(
            [*command, *address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server,
        sync_api.sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 760})
        until(
            lambda: page.goto(f"http://127.0.0.1:{port}/0/view/queues"),
            away=(sync_api.Error,),
            process=server,
        )
        yield page
        browser.close()
        server.terminate()


def test_dashboard_shows_attempts_and_dead_runs(inbox, redis_url, dashboard, picture):
    def credit(event, _tx):
        if event.type == "invoice.unpaid":
            raise GiveUp("no such order")
        is_seen.wait(60)

    is_seen = threading.Event()
    inbox.on(credit)
    inbox.deliver(*(f"unpaid{n}" for n in range(3)), type="invoice.unpaid")
    inbox.deliver(*(f"paid{n}" for n in range(6)), type="invoice.paid")
    pool = Pool(inbox.settings, inbox.registry, slots=6)
    with redis.Redis.from_url(redis_url) as client:
        worker = Worker(["hookonce"], connection=client, name="shop-1", claimer=pool)
        worker.register_birth()
        with Mirror(worker, pool):
            pool.run_due()
            dashboard.get_by_role("link", name="6", exact=True).wait_for()
            dashboard.get_by_role("link", name="3", exact=True).click()
            dashboard.get_by_text("handler credit").first.wait_for()
            dashboard.get_by_text(redis_url).evaluate_all("found => found.forEach(each => each.remove())")
            picture(dashboard, "rq-dashboard")
            is_seen.set()
            shown = dashboard.inner_text("body")
        pool.close()

    assert "GiveUp (" in shown
    assert "no such order" not in shown
