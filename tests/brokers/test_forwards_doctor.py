from hookonce.receiver.cli.doctor import brokers
from tests.support.forwarding import SECRET, configured, forward


def findings(inbox):
    return [(each.level, each.text) for each in brokers.forwards(inbox.settings)]


def test_stream_that_forgets_ids_before_retries_end_is_warned_of(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))

    ((level, text),) = findings(inbox)

    assert level == "warn"
    assert "stream EVENTS covers events.paid; it knows ids for 2 min only" in text


def test_stream_that_knows_ids_for_long_enough_is_right(inbox, tmp_path, nats_server):
    nats_server.make_stream(duplicate_window=86400)
    configured(inbox, tmp_path, forward(nats_server.url()))

    assert findings(inbox) == [("ok", "stream EVENTS covers events.paid")]


def test_subject_without_a_stream_fails(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url("other")))

    ((level, text),) = findings(inbox)

    assert (level, "no stream covers other" in text) == ("fail", True)


def test_broker_that_does_not_answer_fails(inbox, tmp_path):
    configured(inbox, tmp_path, forward("nats://127.0.0.1:1/other"))

    ((level, text),) = findings(inbox)

    assert (level, "does not answer" in text) == ("fail", True)


def test_endpoint_is_shown_by_its_host(inbox, tmp_path):
    url = "https://me:word@shop.example/in?token=secret"
    configured(
        inbox, tmp_path, forward("env:OUT", secret="env:FORWARD_SECRET"), OUT=url, FORWARD_SECRET=SECRET
    )

    assert findings(inbox) == [("ok", "to https://shop.example")]
