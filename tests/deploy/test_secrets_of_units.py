"""No worker's unit, service or Deployment is given a secret of a source or the admin token; nor is the upgrade."""

import re

import yaml

from hookonce.receiver.config.settings import load_settings
from tests.support import deployed

DOCUMENTS = list(yaml.safe_load_all((deployed.ROOT / "deploy" / "kubernetes.yaml").read_text()))
SERVERS = {"DATABASE_URL", "REDIS_URL"}
OPEN = {"HOOKONCE_LOG_LEVEL", "HOOKONCE_CONFIG", "PORT"}
"""Variables that hold no secret."""
FORBIDDEN = re.compile(r"SECRET|TOKEN|PASSWORD|_KEY")


def of_systemd():
    units, files = deployed.units(), deployed.environments()
    return {name: set(files[unit["Service"]["EnvironmentFile"]]) for name, unit in units.items()}


def of_kubernetes():
    pods = [each for each in DOCUMENTS if each["kind"] in {"Deployment", "Job"}]
    return {
        pod["metadata"]["name"]: set(deployed.kubernetes_environment(DOCUMENTS, container))
        for pod in pods
        for container in pod["spec"]["template"]["spec"]["containers"]
    }


def test_workers_and_upgrades_are_given_the_servers_and_no_secret_of_others():
    given = of_systemd() | of_kubernetes()
    quiet = {name: names for name, names in given.items() if "worker" in name or "upgrade" in name}

    assert {*given} - {*quiet} == {
        f"hookonce-{name}" for name in ("serve", "serve.service", "desk", "desk.service")
    }
    assert len(quiet) == 4
    assert {name: each for name, names in quiet.items() for each in names - SERVERS - OPEN} == {}
    assert {name: names & SERVERS for name, names in quiet.items() if "upgrade" in name} == {
        "hookonce-upgrade.service": {"DATABASE_URL"},
        "hookonce-db-upgrade": {"DATABASE_URL"},
    }


def test_receivers_are_given_every_secret_that_the_configuration_names(tmp_path):
    (config,) = [each for each in DOCUMENTS if each["kind"] == "ConfigMap"]
    file = tmp_path / "hookonce.toml"
    file.write_text(config["data"]["hookonce.toml"])
    given = of_kubernetes()

    named = {
        reference.partition(":")[2]
        for source in load_settings({"HOOKONCE_CONFIG": str(file)}, need_secrets=False).sources.values()
        for reference in source.references
        if not reference.endswith("?")
    }

    assert named
    assert named <= given["hookonce-serve"]
    assert named & (given["hookonce-worker"] | given["hookonce-db-upgrade"]) == set()


def test_compose_gives_each_service_a_file_of_its_own():
    files = {name: paths for name, (paths, _) in deployed.compose_files().items()}
    names = {each for _, variables in deployed.compose_files().values() for each in variables}

    desk = {"web.env", "desk.env"}
    assert files == {
        "release": set(),
        "roles": set(),
        "web": {"web.env"},
        "worker": {"worker.env"},
        "desk": desk,
    }
    assert [each for each in names if FORBIDDEN.search(each)] == []


def test_pages_about_deploys_name_no_file_that_all_processes_read():
    pages = [
        *deployed.PAGES.glob("*.md"),
        deployed.ROOT / "compose.yaml",
        *deployed.ROOT.glob("deploy/systemd/*"),
    ]

    assert [page.name for page in pages if "/etc/hookonce/environment" in page.read_text()] == []
