from tests.support.senders import ids_of

ORDER = {
    "data": {"id": "yzkWXfWDnu", "type": "orders", "attributes": {"updated_at": "2026-01-01T00:00:00.000Z"}}
}


def test_commerce_layer_tells_two_topics_with_equal_bodies_apart():
    placed, authorized = (
        ids_of("commerce_layer", ORDER, **{"x-commercelayer-topic": topic})
        for topic in ("orders.place", "orders.authorize")
    )

    assert placed != authorized
