"""Signed messages, places of signatures and their times, for all ways to sign.

`verdict`: the options of a signer, the reasons of a refusal, the comparison of signatures
`timestamps`: signed times, and how far off they may be
`header_lists`: headers that hold several values
`message_template`: from a template to the signed bytes
`canonical_request`: requests signed in a canonical form
`signed_urls`: signed URLs, and the ways to write one
`signature_in_body`: senders whose signature is in the body
`composite_secrets`: secrets of several parts
"""
