"""Test deliveries: bodies as senders post them, with fresh ids and times, to be signed with a source's own secret.

The values are invented, or from the senders' documentation; the shapes are the senders'. `bodies/<provider>.json` has
a provider's samples by type, the usual one first; adding one there is all it takes.

`envelopes`: headers of a sender besides the signature
`files`: reads them
`fresh_ids`: other ids of the same form
`moved_times`: the same event at another time
`evidence`: what shows that a sender's module is right
`edits`: values set and removed by path
`documents`: a sample as it is to be sent: the file's, freshened and edited, and encoded
"""
