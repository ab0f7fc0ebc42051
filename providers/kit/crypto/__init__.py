"""Secrets, keys and signatures as bytes; what is signed is the next package's.

`secret_keys`: the configured text and the key that it stands for
`signature_text`: hex and base64, in the one spelling that is compared
`public_keys`: RSA, ECDSA and Ed25519 keys, and what they verify
`fetched_keys`: which keys may be fetched, and how a provider asks for one
`certificates`: keys in certificates, and chains up to a root that we know
`jws`: signed tokens
`encrypted_body`: bodies that a sender encrypts
"""
