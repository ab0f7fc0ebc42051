"""Each process has its own role of PostgreSQL, no right of the system that it does not need, and upper bounds."""

import re

import pytest
import yaml

from tests.support import deployed

COMPOSE = yaml.safe_load((deployed.ROOT / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
OURS = {name: each for name, each in SERVICES.items() if "build" in each}
DOCUMENTS = list(yaml.safe_load_all((deployed.ROOT / "deploy" / "kubernetes.yaml").read_text()))
PODS = {
    each["metadata"]["name"]: each["spec"]["template"]["spec"]
    for each in DOCUMENTS
    if each["kind"] in {"Deployment", "Job"}
}
CONTAINERS = [
    (pod, container)
    for pod in PODS.values()
    for container in (*pod.get("initContainers", ()), *pod["containers"])
]
GIVEN = ["db", "roles", "--receiver", "inbox_in", "--worker", "inbox_work", "--desk", "inbox_desk", "--apply"]
ROLES = {"upgrade": "inbox_upgrade", "serve": "inbox_in", "worker": "inbox_work", "desk": "inbox_desk"}
CONFINED = {
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "PrivateTmp": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "RestrictNamespaces": "yes",
    "SystemCallFilter": "@system-service",
}


def role(url):
    return re.match(r"postgresql://(\w+):", url)[1]


def test_compose_connects_each_process_as_its_role():
    found = {name: role(service["environment"]["DATABASE_URL"]) for name, service in OURS.items()}

    names = {"release": "upgrade", "roles": "upgrade", "web": "serve", "desk": "desk", "worker": "worker"}
    assert found == {name: ROLES[task] for name, task in names.items()}
    assert SERVICES["roles"]["command"] == GIVEN
    assert set(re.findall(r"CREATE ROLE (\w+)", COMPOSE["configs"]["roles"]["content"])) == {*ROLES.values()}
    for name in ("web", "desk", "worker"):
        assert SERVICES[name]["depends_on"]["roles"]["condition"] == "service_completed_successfully"


def test_units_connect_as_their_roles_and_the_first_gives_them_rights():
    files, units = deployed.environments(), deployed.units()

    for task, expected in ROLES.items():
        service = units[f"hookonce-{task}.service"]["Service"]
        assert role(files[service["EnvironmentFile"]]["DATABASE_URL"]) == expected
    given = units["hookonce-upgrade.service"]["Service"]["ExecStartPost"]
    assert given.split()[1:] == GIVEN


def test_containers_connect_as_their_roles_and_the_job_gives_them_rights():
    job = PODS["hookonce-db-upgrade"]
    containers = {"upgrade": job["containers"][0]} | {
        task: PODS[f"hookonce-{task}"]["containers"][0] for task in ("serve", "worker", "desk")
    }
    found = {
        task: role(deployed.kubernetes_environment(DOCUMENTS, each)["DATABASE_URL"])
        for task, each in containers.items()
    }

    assert found == ROLES
    assert [job["initContainers"][0]["args"], job["containers"][0]["args"]] == [["db", "upgrade"], GIVEN]


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_confined_and_bounded(name):
    service = SERVICES[name]

    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]  # seccomp stays Docker's own
    assert service["user"] not in {"", "root", "0"}
    assert service["mem_limit"]
    assert service["pids_limit"] > 0
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    assert re.fullmatch(r"unless-stopped|on-failure:\d+", service["restart"])
    assert all(mount.endswith(":ro") for mount in service["volumes"] if mount.startswith("."))


@pytest.mark.parametrize(("pod", "container"), CONTAINERS)
def test_container_is_confined_and_bounded(pod, container):
    context = container["securityContext"]

    assert (context["runAsNonRoot"], context["allowPrivilegeEscalation"]) == (True, False)
    assert (context["readOnlyRootFilesystem"], context["capabilities"]) == (True, {"drop": ["ALL"]})
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {"memory", "ephemeral-storage"} <= set(container["resources"]["limits"])
    assert pod["automountServiceAccountToken"] is False
    written = {each["name"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert [each["emptyDir"]["sizeLimit"] for each in pod["volumes"] if each["name"] in written] == ["64Mi"]


@pytest.mark.parametrize("name", deployed.units())
def test_unit_is_confined_and_bounded(name):
    unit = deployed.units()[name]

    assert CONFINED.items() <= dict(unit["Service"]).items()
    assert {"MemoryMax", "TasksMax", "LogRateLimitBurst"} <= set(unit["Service"])
    assert int(unit["Unit"]["StartLimitBurst"]) * 2 < int(unit["Unit"]["StartLimitIntervalSec"])
