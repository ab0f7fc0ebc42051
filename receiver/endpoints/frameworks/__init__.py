"""Flask, Django and FastAPI, as far as an operation needs them.

- `request`: what every framework tells of a request, and what is asked of an adapter
- `detection`: whose view was called, and whose transaction it works in
- `flask_views`, `django_views`: found by the request that a view was called with
- `fastapi_routes`: a class of routes, since only a route sees the response
"""
