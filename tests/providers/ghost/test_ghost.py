from datetime import timedelta

import pytest

from tests.support.captured import captured_as

CASE = captured_as("ghost/tag-edited")


def test_equal_bodies_are_two_events_if_they_were_signed_at_two_times():
    again = CASE.signed(at=CASE.now + timedelta(seconds=1))

    assert again.body == CASE.delivery.body
    assert CASE.events(again)[0].id != CASE.events(CASE.delivery)[0].id


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"post":{}}', "post"),
        (b'{"member":{}}', "member"),
        (b'{"site":{}}', "site"),
        (b"{}", "unknown"),
        (b"[]", "unknown"),
    ],
)
def test_type_is_the_kind_of_object(body, kind):
    assert CASE.events(CASE.signed(body))[0].type == kind
