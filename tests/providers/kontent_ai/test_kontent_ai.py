from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load

NEW = (
    b'{"notifications": [{"data": {"system": {"id": "a"}}, '
    b'"message": {"object_type": "content_item", "action": "published"}}]}'
)
LEGACY = b'{"message": {"id": "m-1", "type": "content_item_variant", "operation": "publish"}}'


def test_kontent_ai_only_what_has_no_id_of_its_own_goes_by_the_time_of_receipt():
    [new] = load("kontent_ai").events(Delivery("POST", "", {}, NEW))
    [legacy] = load("kontent_ai").events(Delivery("POST", "", {}, LEGACY))

    assert (new.type, new.is_undated) == ("content_item.published", True)
    assert (legacy.id, legacy.type, legacy.is_undated) == ("m-1", "content_item_variant.publish", False)
