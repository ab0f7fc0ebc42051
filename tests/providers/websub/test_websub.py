import pytest

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit.conformance.cases import refusal
from hookonce.providers.kit.registry import load
from tests.support.captured import captured_as
from tests.support.senders import NOW

CASE = captured_as("websub/youtube")


@pytest.mark.parametrize("topics", ["https://a.example", [""], [7], {"a": 1}])
def test_topics_are_a_list_of_texts(topics):
    with pytest.raises(ValueError, match="topics is"):
        load("websub", options={"topics": topics})


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        ("md5=" + "0" * 32, Reason.BAD_HEADER),
        ("sha1=" + "0" * 40, Reason.BAD_SIGNATURE),
        ("sha384=" + "0" * 96, Reason.BAD_HEADER),
        ("0" * 40, Reason.BAD_HEADER),
    ],
)
def test_signature_is_that_of_a_hash_we_take(signature, reason):
    delivery = Delivery("POST", "", {"x-hub-signature": signature}, CASE.delivery.body)

    assert refusal(lambda: CASE.provider.verify(delivery, [CASE.secret], NOW)) == reason


@pytest.mark.parametrize(
    "body",
    [
        b"<feed", b'<!DOCTYPE x [<!ENTITY a "b">]><feed/>', b"<feed xmlns='http://www.w3.org/2005/Atom'/>",
        CASE.delivery.body.replace(b"</feed>", b"<entry><id>b</id></entry></feed>"), b'{"version":"1"}', b"\xff",
    ],
)  # fmt: skip
def test_content_that_is_no_feed_of_one_entry_is_known_by_its_bytes(body):
    one, other = (CASE.events(Delivery("POST", "", {}, each))[0] for each in (body, body + b" "))

    assert one.id != other.id
    assert one.type == "updated"
