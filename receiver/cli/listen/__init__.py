"""Parts of `hookonce listen`: `signers` know with which secret to sign, and `forwarder` sends."""
