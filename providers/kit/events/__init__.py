"""From a delivery to its events: where a sender keeps ids, types and times.

`fingerprint`: what two deliveries of one event have in common
`fields`: where a value is
`split`: cuts a nested batch into deliveries of one
`identity`: what tells two events apart whose bytes are equal otherwise
`subjects`: the object that an event is about, and its version
`declare`: one event, many, or one of two kinds
"""
