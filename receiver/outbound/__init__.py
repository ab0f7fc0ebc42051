"""Requests that we make to others: only to hosts that a provider declares, bounded in size and time.

`key_fetcher` gets the certificates and key sets that senders publish, and confirms subscriptions, within the
`fetch_limits` that strangers can't spend for all.
"""
