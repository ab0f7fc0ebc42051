"""What an OpenAPI document describes, put to the application that serves it: examples, edges and random requests.

`schema.parametrize()` of schemathesis would read the document and think of all requests while tests are collected, in
each worker; and its plugin, which that needs, is imported at each start of pytest.
"""

from schemathesis.checks import load_all_checks
from schemathesis.openapi import from_wsgi
from schemathesis.pytest.lazy import get_all_tests

from tests.support.for_each import for_each


def check(app, document, ask, settings, **loading):
    """Have `ask(case)` put each operation of a document to its application. Raises: AssertionError that names all.

    `loading` is how the document is asked for, such as `headers`.
    """
    load_all_checks()
    schema = from_wsgi(document, app, **loading)
    tests = get_all_tests(schema=schema, test_func=ask, settings=settings, given_kwargs={})

    @for_each((each.ok() for each in tests), named=lambda each: each[0].label)
    def answers(_, test):
        test()

    answers()
