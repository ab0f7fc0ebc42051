import pytest

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.registry import load


def test_quickbooks_body_of_neither_shape_is_refused():
    with pytest.raises(Rejected):
        load("quickbooks").events(Delivery("POST", "", {}, b'{"other":1}'))
