"""What keeps the ledger in shape while it is in use.

- `partitions`: the days of `bodies`, made ahead and dropped
- `retention`: what has outlived its horizon
- `key_rotation`: encrypts what is kept with another key
"""
