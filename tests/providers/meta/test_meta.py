import json

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load


def test_meta_event_has_the_same_id_alone_and_in_a_batch():
    def entry(*messages):
        return {
            "id": "W",
            "changes": [{"field": "messages", "value": {"contacts": [1], "messages": list(messages)}}],
        }

    whole = {
        "object": "whatsapp_business_account",
        "entry": [entry({"id": "a"}, {"id": "b"}), entry({"id": "c"})],
    }
    alone = {"object": "whatsapp_business_account", "entry": [entry({"id": "c"})]}

    events = load("meta").events(Delivery("POST", "", {}, json.dumps(whole).encode()))
    assert [event.id for event in events] == ["a", "b", "c"]
    assert json.loads(events[2].raw) == alone
