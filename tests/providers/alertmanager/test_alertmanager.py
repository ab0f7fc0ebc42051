import json

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from tests.support.captured import captured_as

CASE = captured_as("alertmanager/resolved")


def ids(body):
    return CASE.events(Delivery("POST", "", {}, json.dumps(body).encode()))[0].id


def test_alert_that_changes_is_a_new_event_and_an_annotation_is_not():
    sent = json.loads(CASE.delivery.body)
    noted = json.loads(CASE.delivery.body)
    noted["alerts"][0]["annotations"]["description"] = "CPU core temperature is 35.1C"
    ended = json.loads(CASE.delivery.body)
    ended["alerts"][0]["endsAt"] = "2020-02-06T00:20:00Z"

    assert ids(sent) == ids(noted) != ids(ended)


@pytest.mark.parametrize("options", [{"reminders": "yes"}, {"reminders": 1}])
def test_reminders_are_true_or_false(options):
    with pytest.raises(ValueError, match="expected true or false"):
        load("alertmanager", options=options)
