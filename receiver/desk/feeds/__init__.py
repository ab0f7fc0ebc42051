"""Feeds of events, for a client that keeps its place.

`following` has what comes and what becomes of it, `pulls` events with their bodies for another machine, and `transfer`
what is taken from one ledger into another.
"""
