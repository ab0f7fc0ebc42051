"""What vendors say they send, reduced to its shape: kinds of events, and of each its keys with their JSON types.

`make` writes the shapes from a package that was unpacked, and `shapes` reads them: what the repository keeps of an
example is its keys, and nothing that stands in it. Neither package is the vendor's own: GitHub's examples are collected
by the Octokit community, Shopify's schemas by one author from what Shopify sends.
`typed` says what is made of what, and `facts` what the vendors say of ids and retries besides. A catalogue whose source
is a page (`documented`) was written down by hand.
"""
