"""What hookonce is compared with: `empty_route` does nothing at all, `obvious_way` the same work as one would do it.

`fastapi_receiver` and `djstripe_site` are what users might pick instead; they run in an environment of their own.
"""
