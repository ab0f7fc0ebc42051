"""*Event*: one event in full.

`page` shows it: what failed and why as `run_panels` tell it, where the time went as a `waterfall`, the `proof` that it
is genuine, its body as `body_view` makes it readable, and itself `as_test`. `diff` compares its body with
that of another; `send_again` sends it to an address of the operator's, `edit` takes it in again with another body, as a
test event.
"""
