"""Asks senders: which events there were, and to have subscriptions live on; in the one process that has their keys.

`client` calls a sender's API at a tenth of what its sender allows, `reconciling` compares lists with the ledger and has
missing events come, `renewing` makes and renews subscriptions, and `rounds` does what is due.
"""
