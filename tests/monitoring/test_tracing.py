import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg
import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.web.mounted import intake_class
from tests.http.conftest import _environment, serving
from tests.support.inbox import inbox
from tests.support.kept_lines import keeping_lines
from tests.support.new_event import new_event

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from hookonce.jobs import drain
from hookonce.jobs.attempts import traces
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.intake import traced as traced_intake
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.results import CALL
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.monitoring import otel
from tests.support.in_process import Receiver
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SECRET = "whsec_of_the_tests"
THEIRS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SERVERS = {"DATABASE_URL": "postgresql:///x", "REDIS_URL": "redis://x", "HOOKONCE_CONFIG": "/dev/null"}

__all__ = ["inbox"]


@pytest.fixture
def spans(monkeypatch):
    """What was traced in this process, by the first word of its name."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.add_span_processor(traces.Calls())
    for module in (traced_intake, traces):
        monkeypatch.setattr(module, "tracer", lambda: provider.get_tracer("tests"))

    def by_name():
        return {span.name.split(" ")[0]: span for span in exporter.get_finished_spans()}

    by_name.all = exporter.get_finished_spans
    yield by_name
    provider.shutdown()


@pytest.fixture
def receiver(inbox, spans):  # noqa: ARG001  before anything is traced
    receiver = Receiver(inbox.settings.database_url, inbox.settings.redis_url, tracing=True)
    receiver.add("stripe", load("stripe"), SECRET)
    inbox.drains.append(
        SingleSlot(
            Settings(inbox.settings.database_url, inbox.settings.redis_url, {}, tracing=True), inbox.registry
        )
    )
    yield receiver
    receiver.close()


def deliver(receiver, secret=SECRET, number=1, **headers):
    body = b'{"id": "evt_%d", "type": "invoice.paid", "private": "a body is not traced"}' % number
    signed = load("stripe").sign(body, secret, receiver.now)
    receiver.send("stripe", Delivery("POST", "/", {**signed, **headers}, body))


def test_trace_goes_from_a_delivery_to_its_run(receiver, inbox, spans):
    inbox.on(credit)
    deliver(receiver)

    inbox.work()

    delivery, run = spans()["delivery"], spans()["run"]
    assert (delivery.kind, run.kind) == (SpanKind.SERVER, SpanKind.CONSUMER)
    assert run.parent.span_id == delivery.context.span_id
    assert run.context.trace_id == delivery.context.trace_id
    assert dict(delivery.attributes) == {
        "hookonce.source": "stripe",
        "hookonce.provider": "stripe",
        "hookonce.outcome": "accepted",
        "hookonce.events": 1,
    }
    assert (run.attributes["hookonce.handler"], run.attributes["hookonce.status"]) == ("credit", "done")


def credit(_event, _tx):
    return None


def test_trace_of_a_failed_attempt_says_so_without_the_error_itself(receiver, inbox, spans):
    def fail(_event, _tx):
        raise ValueError("a secret of the handler")

    inbox.on(fail)
    deliver(receiver)

    inbox.work()

    run = spans()["run"]
    assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, None)
    assert run.attributes["hookonce.status"] == "dead"
    assert "secret" not in run.to_json() + spans()["delivery"].to_json()


def test_calls_that_a_handler_traces_are_kept_with_its_attempt(receiver, inbox, spans):
    def charge(_event, _tx):
        asked = {"server.address": "api.stripe.com", "url.full": "https://api.stripe.com/?key=sk_1"}
        with traces.tracer().start_as_current_span("POST", kind=SpanKind.CLIENT, attributes=asked):
            pass
        with traces.tracer().start_as_current_span("add up"):
            pass

    inbox.on(charge)
    deliver(receiver)

    with keeping_lines():
        inbox.work()

    ((call,),) = [
        log.lines
        for log in event_details.detail(inbox.connection, 1, inbox.settings.keyring).with_content().logs
    ]
    assert (call.level, call.logger, call.text) == ("", CALL, "POST api.stripe.com")
    assert call.at >= 0
    assert 0 <= call.took < 1000
    assert spans()["POST"].parent.span_id == spans()["run"].context.span_id


@pytest.mark.parametrize("fails", [False, True])
def test_batch_is_a_span_in_the_first_trace_that_is_linked_to_the_others(receiver, inbox, spans, fails):
    def count(events, _tx):
        if fails and len(events) > 1:
            raise ValueError("a secret of the handler")

    inbox.on(count, batch=BatchSize(10))
    for number in range(3):
        deliver(receiver, number=number)

    inbox.work()

    found = [span for span in spans.all() if span.name == "batch count"]
    delivered = [span.context for span in spans.all() if span.name.startswith("delivery")]
    batch = found[0]
    assert batch.parent.span_id == delivered[0].span_id
    assert [link.context.span_id for link in batch.links] == [each.span_id for each in delivered[1:]]
    assert dict(batch.attributes) == {
        "hookonce.handler": "count",
        "hookonce.events": 3,
        "hookonce.status": "waiting" if fails else "done",
    }
    assert batch.status.status_code == (StatusCode.ERROR if fails else StatusCode.UNSET)
    assert not any("secret" in span.to_json() for span in found)


def test_trace_of_a_sender_is_linked_to_and_not_gone_on_with(receiver, spans):
    deliver(receiver, traceparent=THEIRS)

    span = spans()["delivery"]
    assert span.parent is None
    assert [f"{link.context.trace_id:x}" for link in span.links] == ["af7651916cd43dd8448eb211c80319c"]


@pytest.mark.parametrize("header", ["", "no trace", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_trace_ignores_a_traceparent_that_is_none(receiver, spans, header):
    deliver(receiver, traceparent=header)

    assert not spans()["delivery"].links


def test_trace_tells_why_a_delivery_was_refused(receiver, spans):
    deliver(receiver, secret="another")

    assert spans()["delivery"].attributes["hookonce.outcome"] == "bad_signature"
    assert "private" not in spans()["delivery"].to_json()


@pytest.mark.usefixtures("receiver")
def test_run_of_an_untraced_delivery_begins_a_trace(inbox, spans):
    inbox.on(credit)
    inbox.deliver("a")

    inbox.work()

    assert spans()["run"].parent is None


def test_event_keeps_no_traceparent_where_nothing_is_traced(inbox):
    inbox.deliver("a")

    assert inbox.rows("SELECT traceparent FROM hookonce.bodies") == [(None,)]
    assert new_event().traceparent is None
    assert intake_class(inbox.settings) is Intake


@pytest.mark.parametrize(
    ("environ", "table", "expected"),
    [
        ({}, "", False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "", True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "[tracing]\nenabled = false", False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, "", False),
        ({}, "[tracing]\nenabled = true", True),
    ],
)
def test_tracing_is_on_where_it_is_wanted(tmp_path, environ, table, expected):
    (tmp_path / "hookonce.toml").write_text(table)

    settings = load_settings({**SERVERS, **environ, "HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml")})

    assert settings.tracing is expected


def test_only_modules_that_are_loaded_when_wanted_need_opentelemetry():
    importing = re.compile(
        r"^(?:from|import) "
        r"(opentelemetry|hookonce\.receiver\.monitoring\.otel|"
        r"hookonce\.(?:jobs\.attempts|receiver\.intake|receiver\.idempotency)\.trace[ds])\b",
        re.MULTILINE,
    )
    modules = [path for package in ("jobs", "receiver") for path in (ROOT / package).rglob("*.py")]

    found = {path.relative_to(ROOT).as_posix() for path in modules if importing.search(path.read_text())}

    assert found == {
        "jobs/attempts/traces.py",
        "receiver/idempotency/traced.py",
        "receiver/intake/traced.py",
        "receiver/monitoring/otel.py",
    }


def test_work_horse_sends_what_it_traced_before_it_ends(receiver, inbox, monkeypatch):
    inbox.on(credit)
    deliver(receiver)
    sent = []
    monkeypatch.setattr(drain, "process_claimer", lambda: inbox.drains[0])
    monkeypatch.setattr(otel, "flush", lambda: sent.append(inbox.runs()))

    drain.perform([])

    assert sent == [[("evt_1", "credit", "done", 1)]]


class Collector(ThreadingHTTPServer):
    """Takes spans over OTLP/HTTP: (service, span) each."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Collecting)
        self.spans = []
        self.came = threading.Condition()

    def await_spans(self, number):
        with self.came:
            assert self.came.wait_for(lambda: len(self.spans) >= number, 20), self.spans
            return self.spans


class Collecting(BaseHTTPRequestHandler):
    def do_POST(self):
        sent = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
        with self.server.came:
            for resource in sent.resource_spans:
                (service,) = (
                    a.value.string_value for a in resource.resource.attributes if a.key == "service.name"
                )
                self.server.spans += [
                    (service, span) for scope in resource.scope_spans for span in scope.spans
                ]
            self.server.came.notify_all()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def traced_environ(collector, database_url, redis_url, tmp_path):
    """Spans are sent when a process ends and not before: nothing else may bring them in time."""
    (tmp_path / "handling.py").write_text(
        "from hookonce import on\n@on('stripe')\ndef credit(event, tx):\n    return None\n"
    )
    return _environment(database_url, redis_url) | {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "600000",
        "HOOKONCE_HANDLERS": "handling",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]),
    }


def test_trace_of_both_processes_reaches_the_collector(
    collector, traced_environ, tmp_path, database_url, redis_url
):
    with serving(tmp_path, database_url, redis_url, **traced_environ, OTEL_SERVICE_NAME="web") as server:
        server.deliver(b'{"id": "evt_1", "type": "invoice.paid"}')
        server.process.terminate()
        worker = [sys.executable, "-m", "hookonce.receiver.cli", "worker", "--alone"]
        environ = traced_environ | {"OTEL_SERVICE_NAME": "jobs"}
        with subprocess.Popen(worker, cwd=tmp_path, env=environ) as running:
            until(lambda: unhandled(database_url), [], process=running, seconds=60)
            running.terminate()
        server.process.wait(60)

    sent = {span.name.split()[0]: (service, span) for service, span in collector.await_spans(5)}
    delivery = sent["delivery"][1]
    assert {name: service for name, (service, _) in sent.items()} == {
        **dict.fromkeys(("delivery", "claim", "store", "settle"), "web"),
        "run": "jobs",
    }
    parts = [sent[name][1] for name in ("claim", "store", "settle", "run")]
    assert {(each.parent_span_id, each.trace_id) for each in parts} == {(delivery.span_id, delivery.trace_id)}


def unhandled(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        return connection.execute(
            "SELECT event_id, status FROM hookonce.event_states WHERE status <> 'done'"
        ).fetchall()
