"""Requests that we make to others: only to hosts that a provider or the configuration names, bounded in size and time.

`key_fetcher` gets the certificates and key sets that senders publish, and confirms subscriptions, within the
`fetch_limits` that strangers can't spend for all. `api_calls` sends requests of a sender's API. `forwarding` sends a
stored delivery to an address of the operator's, once `signing` has signed it anew. `brokers` has the clients
of brokers, and of endpoints of the configuration.
"""
