"""The examples: few lines of integration, and each event is booked once through the ORM, wherever the worker dies."""

import psycopg
import pytest

from tests.support.applications import EXAMPLES, SERVERS, TABLE, WORKER, Project, end, paid
from tests.support.stories.lab import RESTLESS, TIME_PASSES
from tests.support.waiting import until

MARK = "# hookonce"
MOST_LINES = 6
NO_INTEGRATION = {"webhooks.py", "conftest.py", "test_webhooks.py"}
"""The handlers, and their tests."""
CUTS = 9
DEADLINE = 60
SERVER = {
    "flask": "flask under gunicorn gthread",
    "fastapi": "fastapi under uvicorn",
    "django": "django under gunicorn gthread",
}
INSIDE = {"handler.entered", "handler.returned", "run.ended", "run.committed"}


@pytest.fixture
def project(request, tmp_path, database_url, redis_url):
    made = Project(request.param, tmp_path, database_url, redis_url)
    made.make_tables()
    return made


each_project = pytest.mark.parametrize(
    "project",
    [
        "flask",
        "fastapi",
        pytest.param(
            "django", marks=pytest.mark.long
        ),  # its worker dies everywhere in stories/test_django.py
    ],
    indirect=True,
)


@each_project
def test_every_event_is_booked_once_wherever_the_worker_dies(project):
    log = project.directory / "failpoints"
    alone = [*WORKER[project.name], "--alone"]
    restless = lambda: project.query(RESTLESS)[0][0]  # noqa: E731  a word for it

    with project.serving(SERVERS[SERVER[project.name]][1]) as served:
        for cut in range(1, CUTS + 1):
            assert served.deliver(paid(cut)).document["status"] == "accepted"
            assert served.deliver(paid(cut)).document["status"] in {"duplicate", "accepted"}
            worker = project.start(*alone, HOOKONCE_FAILPOINT=str(cut), HOOKONCE_FAILPOINT_LOG=str(log))
            until(
                lambda worker=worker: worker.poll() is not None or not restless(),
                seconds=DEADLINE,
                what="the worker's end",
            )
            end(worker)
            with psycopg.connect(project.database_url) as connection:
                for statement in TIME_PASSES:
                    connection.execute(statement, {"span": "1 day"})
    worker = project.start(*alone)
    until(restless, 0, seconds=DEADLINE)
    end(worker)

    booked = project.query(f"SELECT invoice, count(*) FROM {TABLE[project.name]} GROUP BY 1 ORDER BY 1")  # noqa: S608
    assert booked == [(f"in_{cut}", 1) for cut in range(1, CUTS + 1)]
    assert project.query("SELECT DISTINCT status FROM hookonce.run_states") == [("done",)]
    assert set(log.read_text().split()) >= INSIDE


@pytest.mark.parametrize("name", SERVER)
def test_integration_takes_few_lines(name):
    files = [path for path in (EXAMPLES / name).rglob("*") if path.suffix in {".py", ".toml"}]
    marked = [line for path in files for line in path.read_text().splitlines() if line.endswith(MARK)]

    assert 0 < len(marked) <= MOST_LINES
    unmarked = [
        (path.name, line)
        for path in files
        if path.name not in NO_INTEGRATION
        for line in path.read_text().splitlines()
        if "hookonce" in line and not line.endswith(MARK) and '"""' not in line
    ]
    assert not unmarked


def test_models_of_the_example_are_in_its_migrations(tmp_path, database_url, redis_url):
    project = Project("django", tmp_path, database_url, redis_url)

    project.run("manage.py", "makemigrations", "--check", "--dry-run")
    project.run("manage.py", "check", "--fail-level", "WARNING")
