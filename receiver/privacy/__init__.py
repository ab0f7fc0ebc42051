"""What may be kept of a delivery.

`masking` takes credentials out of headers, URLs and refused bodies, `redaction` takes configured values out of bodies,
and `at_rest` redacts, then encrypts, what is stored.
"""
