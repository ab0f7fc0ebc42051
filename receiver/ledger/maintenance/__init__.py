"""Upkeep of the ledger while it is in use.

- `partitions`: the days of `bodies`, made ahead and dropped
- `retention`: what has outlived its horizon
- `erasure`: what is known of a person, event by event
- `lost_events`: events of which nothing is left but that they came, and runs under a claim that there is not
- `key_rotation`: encrypts what is kept with another key
- `sender_api`: what senders list, what is missing of it, and subscriptions
- `steady_clock`: whether what deletes by age may go by the clock
"""
