"""Events made of samples, for handlers that are called by a test."""

import pytest

from hookonce.jobs.event import ReceivedEvent
from hookonce.providers.kit.registry import names
from hookonce.receiver.samples import files
from hookonce.testing import event
from tests.support.for_each import for_each

NEEDS_OPTIONS = {"adobe_sign"}
SIGNED_BY_SENDERS_ALONE = {"apple_app_store"}
OF_OTHER_OPTIONS = {("mollie", "payment")}


@for_each(name for name in names(()) if files.types(name) and name not in NEEDS_OPTIONS)
def test_every_sample_of_every_sender_is_an_event(name):
    if name in SIGNED_BY_SENDERS_ALONE:
        with pytest.raises(ValueError, match="without its sender's own signature"):
            event(name)
        return
    for kind in (kind for kind in files.types(name) if (name, kind) not in OF_OTHER_OPTIONS):
        made = event(name, kind)
        assert isinstance(made, ReceivedEvent)
        assert made.type
        assert made.data is not None
