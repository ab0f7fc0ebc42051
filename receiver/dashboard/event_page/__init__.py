"""*Event*: one event in full.

`page` shows it: its `timeline`, the `proof` that it is genuine, its body as `body_view` makes it readable, and itself
`as_test`. `send_again` sends it to an address of the operator's.
"""
