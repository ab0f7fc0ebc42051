"""What vendors say they send, reduced to its shape: kinds of events, and of each its keys with their JSON types.

`tests/catalogues/` has the shapes: what the repository keeps of an example is its keys, and nothing that stands in it.
Each names its source: package, version and licence, or the vendor's page (`documented`) that it was written down from.
Few of the packages are the vendor's own: GitHub's examples are collected by the Octokit community, Shopify's schemas by
one author from what Shopify sends. `shapes` reads them, and `facts` says what the vendors say of ids and retries.
"""
