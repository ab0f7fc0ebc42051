"""Parts of `hookonce listen`: `signers` know with which secret to sign, `forwarder` sends, `target` is where to."""
