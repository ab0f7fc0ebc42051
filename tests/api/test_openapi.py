import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hookonce.receiver.api import openapi, routes

validator = pytest.importorskip("openapi_spec_validator")


def test_document_is_valid_openapi():
    made = json.loads(openapi.document())

    validator.validate(made)

    assert made["openapi"].startswith("3.1")


def test_document_has_every_operation_once():
    made = json.loads(openapi.document())

    names = [operation["operationId"] for path in made["paths"].values() for operation in path.values()]

    assert sorted(names) == sorted(operation.name for operation in routes.OPERATIONS)


def test_document_is_made_once_however_many_ask_at_first(monkeypatch):
    made = []
    monkeypatch.setattr(openapi, "_schemas", lambda: made.append(time.sleep(0.05)) or {})
    openapi.made.cache_clear()

    with ThreadPoolExecutor(8) as threads:
        documents = {each.result() for each in [threads.submit(openapi.document) for _ in range(8)]}
    openapi.made.cache_clear()

    assert (len(made), len(documents)) == (1, 1)


def test_document_is_public(calm):
    answer = calm.ask("GET", "/openapi.json", scope=None)

    assert (answer.status_code, answer.content_type) == (200, "application/json")
