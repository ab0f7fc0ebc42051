import gc
import os
from types import SimpleNamespace

import pytest
from gunicorn.config import KNOWN_SETTINGS, Config

from hookonce.receiver.processes import collector
from hookonce.receiver.processes.cores import processes
from hookonce.receiver.web import gunicorn_conf
from hookonce.receiver.web.http.settings import ALLOWED, HONOURED
from hookonce.receiver.web.worker import LoopWorker


@pytest.fixture
def as_before():
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("as_before")
def test_worker_leaves_what_it_has_loaded_to_no_collector():
    worker = LoopWorker.__new__(LoopWorker)
    worker.cfg, worker.app = Config(), SimpleNamespace(wsgi=lambda: None)

    worker.load_wsgi()

    assert gc.get_threshold() == collector.THRESHOLDS
    assert gc.get_freeze_count() > 0


def configured(**settings):
    """gunicorn's configuration with our own settings, and then others."""
    config = Config()
    for name in vars(gunicorn_conf):
        if name in config.settings:
            config.set(name, getattr(gunicorn_conf, name))
    for name, value in settings.items():
        config.set(name, value)
    return config


def test_worker_honours_its_own_settings():
    LoopWorker.check_config(configured(), None)


IGNORED = {
    "threads": 4,
    "proxy_protocol": True,
    "protocol": "uwsgi",
    "http_protocols": "h2,h1",
    "http_parser": "fast",
    "header_map": "dangerous",
    "permit_obsolete_folding": True,
    "strip_header_spaces": True,
    "casefold_http_method": True,
    "root_path": "/elsewhere",
    "secure_scheme_headers": {"X-FORWARDED-PROTO": "https"},
    "forwarder_headers": "SCRIPT_NAME",
    "do_handshake_on_connect": True,
    "pre_request": lambda _worker, _request: None,
    "post_request": lambda _worker, _request, _environ, _response: None,
}


@pytest.mark.parametrize(("name", "value"), IGNORED.items(), ids=IGNORED)
def test_worker_refuses_a_setting_that_it_would_pass_over(name, value):
    with pytest.raises(RuntimeError, match=name):
        LoopWorker.check_config(configured(**{name: value}), None)


def test_worker_names_only_settings_that_gunicorn_has():
    known = {setting.name for setting in KNOWN_SETTINGS}

    assert (HONOURED | set(ALLOWED)) <= known


def test_workers_are_told_how_many_they_are(monkeypatch):
    monkeypatch.setenv("WEB_CONCURRENCY", "")

    settings = SimpleNamespace(workers=3, worker_class_str="sync", address=[("127.0.0.1", 8000)])
    gunicorn_conf.on_starting(SimpleNamespace(cfg=settings))

    assert os.environ["WEB_CONCURRENCY"] == "3"


@pytest.mark.parametrize(("cores", "expected"), [(1, 2), (2, 2), (4, 2), (8, 4), (9, 4)])
def test_two_processes_receive_at_least_and_half_as_many_as_cores(cores, expected):
    assert processes(cores) == expected
