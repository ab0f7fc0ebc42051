"""What HTTP adds to an answer of the desk: statuses, locations and downloads."""


def test_body_is_a_download_that_no_browser_shows(inbox):
    (event,) = inbox.deliver("evt_1", body=b"<script>\x00\xff")

    answer = inbox.ask("GET", f"/events/{event}/body")

    assert answer.data == b"<script>\x00\xff"
    assert answer.content_type == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="event-{event}.bin"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_thing_that_was_made_is_named_by_its_location(inbox):
    inbox.deliver("evt_1", status="ignored")

    made = inbox.ask("POST", "/bulk-replays", {"filter": {"status": "ignored"}, "rate": 5})

    assert (made.status_code, made.headers["Location"]) == (201, f"/api/v1/bulk-replays/{made.json['id']}")


def test_action_without_an_answer_is_answered_204(inbox):
    inbox.ask("PUT", "/pauses/source/stripe")

    resumed = inbox.ask("DELETE", "/pauses/source/stripe")

    assert (resumed.status_code, resumed.data) == (204, b"")


def test_cursor_and_filter_are_read_from_the_query(inbox):
    ids = inbox.deliver("a", "b", "c")

    first = inbox.ask("GET", "/events?limit=2&since=2020-01-31T14:00:00%2B02:00").json
    rest = inbox.ask("GET", f"/events?limit=2&cursor={first['next']}").json

    assert [row["id"] for page in (first, rest) for row in page["data"]] == ids[::-1]
