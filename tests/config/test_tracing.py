import pytest

from hookonce.receiver.config import tracing
from hookonce.receiver.config.tracing import Tracing, is_traced

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.fixture(params=["nothing", "the API alone"])
def not_installed(request, monkeypatch):
    def find_spec(name):
        if request.param == "nothing":
            raise ModuleNotFoundError(name)

    monkeypatch.setattr(tracing, "find_spec", find_spec)


@pytest.mark.usefixtures("not_installed")
@pytest.mark.parametrize("is_asked_for", [True, None])
def test_tracing_without_its_extra_is_a_mistake_only_if_it_is_asked_for(is_asked_for):
    mistakes = []

    assert not is_traced(Tracing(enabled=is_asked_for), ENDPOINT, mistakes)

    assert ["hookonce[otel]" in each for each in mistakes] == ([True] if is_asked_for else [])


@pytest.mark.usefixtures("not_installed")
def test_tracing_that_is_turned_off_needs_nothing():
    mistakes = []

    assert not is_traced(Tracing(enabled=False), ENDPOINT, mistakes)
    assert mistakes == []
