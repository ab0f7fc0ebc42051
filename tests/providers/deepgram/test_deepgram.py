from tests.support.senders import ids_of

PIECE = {"type": "Results", "start": 0.0, "metadata": {"request_id": "52cc0efe-fa77-4aa7-b79c-0dda09de2f14"}}


def test_deepgram_pieces_of_a_stream_share_its_request_and_are_events_of_their_own():
    assert ids_of("deepgram", PIECE) != ids_of("deepgram", {**PIECE, "start": 1.98})


def test_deepgram_rolled_secret_is_not_another_event():
    told = [{**PIECE, "metadata": {**PIECE["metadata"], "extra": {"callback_secret": word}}} for word in "ab"]

    assert ids_of("deepgram", told[0]) == ids_of("deepgram", told[1])
