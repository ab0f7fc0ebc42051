"""An inbox of `hookonce.testing` on the servers of these tests."""

import pytest

from hookonce.jobs import handlers
from hookonce.testing import Inbox


@pytest.fixture
def bench(database_url, redis_url, tmp_path, monkeypatch):
    """An inbox, and no handlers of others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(handlers, "registry", handlers.Registry())
    made = Inbox(database_url, redis_url)
    made.execute("CREATE TABLE effects (event text)")
    yield made
    made.close()
