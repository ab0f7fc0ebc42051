from tests.support.senders import ids_of

SALE = "sale_id=FO8TXN&resource_name="


def test_gumroad_refund_is_another_event_than_the_sale():
    assert ids_of("gumroad", (SALE + "sale").encode()) == ["FO8TXN"]
    assert ids_of("gumroad", (SALE + "refund").encode()) != ["FO8TXN"]


def test_gumroad_sale_that_is_sent_again_with_more_fields_is_the_same():
    assert ids_of("gumroad", (SALE + "sale&license_key=1").encode()) == ["FO8TXN"]
