"""Another inbox, as a person's own machine reaches it: over its admin API, and without its database's password.

`errors` are what may be wrong with it, a line each, `addresses` says which URL may be asked, `profiles` keeps the
tokens of people who have logged in, `client` makes a request, and `pull` follows the events there.
"""
