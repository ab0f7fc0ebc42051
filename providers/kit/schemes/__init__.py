"""Ways to sign, one declaration each: what verifies, signs and checks a secret.

`hmac_signature`: HMAC, as two thirds of all senders sign
`standard_webhooks`: Standard Webhooks, Svix
`shared_token`: the secret itself travels along, nothing is signed
`path_secret`: nothing is proven but by the end of our URL
`keyed_digest`: plain digests with the secret among the hashed bytes
`public_key_signature`: RSA, ECDSA and Ed25519
`http_message_signature`: RFC 9421
`jwt`: JSON Web Tokens
`google_oidc`: Google's tokens for service accounts
`sns`: Amazon SNS
"""
