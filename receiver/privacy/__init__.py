"""Privacy: what may be kept of a delivery, and what of that is shown.

`masking` takes credentials out of headers, URLs and refused bodies, `redaction` takes configured values out of bodies,
`at_rest` redacts, then encrypts, what is stored, and `proofs` takes signatures and tokens out of what is shown.
"""
