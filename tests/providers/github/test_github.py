import pytest

from hookonce.providers import Rejected
from tests.support.senders import sent


def test_github_type_is_the_header_alone():
    provider, delivery = sent("github", {"action": "opened"}, type="issues.opened")

    assert provider.events(delivery)[0].type == "issues"


def test_github_event_with_unreadable_json_is_bad_body():
    provider, delivery = sent("github", b"{")

    with pytest.raises(Rejected, match="bad_body"):
        provider.events(delivery)
