"""Why a delivery is refused, without showing a secret or the signature that would be right.

`checks` compares each part with what the sender would send, `header_shapes` describes a header without its content,
`causes` tries what usually goes wrong until the signature fits, `proof` verifies a stored delivery again, and
`rejection` explains what was rejected.
"""
