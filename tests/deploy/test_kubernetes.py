from pathlib import Path

import click
import pytest
import yaml

from hookonce.receiver import vocabulary
from hookonce.receiver.app import create_app
from hookonce.receiver.cli import cli
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.processes import supervisor
from hookonce.receiver.web import gunicorn_conf
from tests.support.deployed import kubernetes_environment

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "deploy" / "kubernetes.yaml"
DOCUMENTS = list(yaml.safe_load_all(MANIFESTS.read_text()))
PODS = {
    each["metadata"]["name"]: each["spec"]["template"]
    for each in DOCUMENTS
    if each["kind"] in {"Deployment", "Job"}
}
CONTAINERS = {name: container for name, pod in PODS.items() for container in pod["spec"]["containers"]}
CONTAINERS["upgrade"] = PODS["hookonce-db-upgrade"]["spec"]["initContainers"][0]


def one(kind):
    (found,) = [each for each in DOCUMENTS if each["kind"] == kind and "desk" not in each["metadata"]["name"]]
    return found


def deployment(name):
    return next(
        each for each in DOCUMENTS if each["metadata"]["name"] == name and each["kind"] == "Deployment"
    )


def grace(name):
    return PODS[name]["spec"]["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_runs_a_command_that_exists(name):
    words = list(CONTAINERS[name]["args"])
    found, context = cli, click.Context(cli)
    while isinstance(found, click.Group):
        found = found.get_command(context, words.pop(0))

    assert isinstance(found, click.Command)
    found.make_context("command", words)


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probe_asks_for_a_page_that_exists(probe):
    asked = CONTAINERS["hookonce-serve"][probe]["httpGet"]
    ports = {port["name"]: port["containerPort"] for port in CONTAINERS["hookonce-serve"]["ports"]}

    settings = Settings("postgresql://localhost:1/nowhere", "redis://localhost:1", {}, desk="door")
    client = create_app(settings).test_client()

    assert client.get(asked["path"]).status_code in {200, 503}
    assert str(ports[asked["port"]]) == variables("hookonce-serve")["PORT"]


def test_receiver_has_time_to_answer_what_it_took():
    waits = int(CONTAINERS["hookonce-serve"]["lifecycle"]["preStop"]["exec"]["command"][1])

    assert grace("hookonce-serve") >= waits + gunicorn_conf.graceful_timeout
    assert grace("hookonce-worker") > supervisor.STOP_TIMEOUT.total_seconds()


@pytest.mark.parametrize("name", CONTAINERS)
def test_variables_are_ones_that_are_read(name):
    assert set(variables(name)) <= set(vocabulary.VARIABLES)


def test_configuration_is_right_with_the_keys_of_the_secret(tmp_path):
    file = tmp_path / "hookonce.toml"
    file.write_text(one("ConfigMap")["data"]["hookonce.toml"])

    settings = load_settings({**given("hookonce-serve"), "HOOKONCE_CONFIG": str(file)})

    assert set(settings.sources) == {"stripe", "github"}


def test_configuration_is_where_it_is_looked_for():
    for name in ("hookonce-serve", "hookonce-worker", "hookonce-desk"):
        mount, _ = CONTAINERS[name]["volumeMounts"]
        volume, _ = PODS[name]["spec"]["volumes"]
        config = one("ConfigMap")

        assert (mount["name"], volume["configMap"]) == (volume["name"], {"name": config["metadata"]["name"]})
        assert variables(name)["HOOKONCE_CONFIG"] == f"{mount['mountPath']}/{next(iter(config['data']))}"


def test_service_and_ingress_lead_to_the_receiver_only():
    (port,) = one("Service")["spec"]["ports"]
    (path,) = one("Ingress")["spec"]["rules"][0]["http"]["paths"]

    assert one("Service")["spec"]["selector"].items() <= PODS["hookonce-serve"]["metadata"]["labels"].items()
    assert port["targetPort"] in {each["name"] for each in CONTAINERS["hookonce-serve"]["ports"]}
    assert path["path"] == "/hooks/"
    assert path["backend"]["service"] == {
        "name": one("Service")["metadata"]["name"],
        "port": {"name": port["name"]},
    }


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_runs_as_the_user_of_the_image_by_number(name):
    assert f"--uid {CONTAINERS[name]['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("name", ["hookonce-serve", "hookonce-worker", "hookonce-desk"])
def test_deployment_selects_its_own_pods(name):
    assert deployment(name)["spec"]["selector"]["matchLabels"] == PODS[name]["metadata"]["labels"]


def variables(name):
    return {each["name"]: each["value"] for each in CONTAINERS[name].get("env", []) if "value" in each}


def given(name):
    return kubernetes_environment(DOCUMENTS, CONTAINERS[name])
