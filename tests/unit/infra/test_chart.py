"""Goal: what Helm makes of the chart is what Kubernetes takes, and gives each process what it needs
and nothing else.

Method: the rendered files, one for each set of values, are looked at. That Helm makes these of the
chart is tested with Helm itself (`tests/integration/infra/test_helm.py`); here a digest tells
whether they are of the chart as it is.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.chart.rendering import CHART, RENDERED, header, manifests, rendered_file, value_files
from infra.chart.schemas import FILE, KINDS, VERSIONS
from infra.compose import SECURE_FILE
from infra.deployment import CHANGEFEED, DASHBOARD, INTAKE, MASTER, REPLICANTS, SPARK, Service
from infra.observe.alerts import rules
from infra.observe.boards import BOARDS, board_json
from leasehold.cli.backups.looking_at import verify
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.main import parser
from leasehold.model.process_rights import KIND_NAMED
from leasehold.settings.audit import AuditSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.environment import ClusterSettings, KafkaSettings, RedisSettings, describe
from leasehold.settings.intake import IntakeSettings
from leasehold.settings.request_key import RequestKeySettings
from leasehold.settings.schema_registry import SchemaRegistrySettings
from leasehold.settings.snapshot import SnapshotSettings
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from leasehold.settings.traces import TraceSettings
from spark_streaming.spark_settings import SparkSettings

Manifest = dict[str, Any]
NAMES: Final = tuple(value_files())
OWNERS: Final = ("StatefulSet", "Deployment", "Job", "CronJob", "Pod")
SERVICES: Final[Mapping[str, Service]] = {
    "master": MASTER,
    "replicant": REPLICANTS[0],
    "changefeed": CHANGEFEED,
    "spark": SPARK,
    "dashboard": DASHBOARD,
    "intake": INTAKE,
}
"""By the name of their container."""
OPERATORS: Final = frozenset({"ServiceMonitor", "PrometheusRule"})
"""Kinds of the Prometheus Operator, which are described elsewhere."""


@cache
def of(name: str) -> list[Manifest]:
    """The manifests of a set of values; nobody changes what is returned."""
    return manifests(name)


def pod_of(owner: Manifest) -> Manifest:
    """Return a pod, or the template of the pods that an owner makes."""
    if owner["kind"] == "Pod":
        return owner
    spec = owner["spec"]["jobTemplate"]["spec"] if owner["kind"] == "CronJob" else owner["spec"]
    found: Manifest = spec["template"]
    return found


def spec_of(owner: Manifest) -> Manifest:
    found: Manifest = pod_of(owner)["spec"]
    return found


def labels_of(owner: Manifest) -> dict[str, str]:
    labels: dict[str, str] = pod_of(owner)["metadata"]["labels"]
    return labels


def owners(name: str) -> Iterator[Manifest]:
    """Yield what has pods."""
    return (each for each in of(name) if each["kind"] in OWNERS)


def containers(name: str) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield each container, and the pod's description that it stands in."""
    for owner in owners(name):
        spec = spec_of(owner)
        for container in spec["containers"]:
            yield container, spec


def container_of(name: str, container: str) -> Manifest:
    (found,) = (each for each, _ in containers(name) if each["name"] == container)
    return found


def variables_of(container: Manifest) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container["env"]}


def each_manifest(kind: str) -> Iterator[tuple[str, Manifest]]:
    return ((name, each) for name in NAMES for each in of(name) if each["kind"] == kind)


# ---------------------------------------------------------------- whether they are what they say


@pytest.mark.parametrize("name", NAMES)
def test_the_rendered_file_is_of_the_chart_as_it_is(name: str) -> None:
    assert rendered_file(name).read_text("utf-8").startswith(header(name)), "run: make chart"


def test_there_is_one_for_each_set_of_values() -> None:
    assert {path.stem for path in RENDERED.glob("*.yaml")} == set(NAMES)
    assert set(NAMES) >= {"minimal", "secure", "sentinel", "spark", "observed"}


def test_rules_and_boards_are_those_of_the_code() -> None:
    assert (CHART / "files" / "alerts.json").read_text("utf-8") == rules(), "run: make reference"
    for board in BOARDS:
        file = CHART / "files" / "boards" / f"{board.name}.json"
        assert file.read_text("utf-8") == board_json(board), "run: make reference"
    ((_, made),) = each_manifest("PrometheusRule")
    assert made["spec"] == json.loads(rules()), "what stands in double braces is Prometheus'"
    (boards,) = (each for each in of("observed") if each["metadata"]["name"].endswith("-boards"))
    assert set(boards["data"]) == {f"{board.name}.json" for board in BOARDS}
    assert all(json.loads(text)["panels"] for text in boards["data"].values())


# ---------------------------------------------------------------- the API's schemas


@cache
def schemas() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return loaded


def complaints(manifest: Manifest, version: str) -> list[str]:
    kind = KINDS[manifest["apiVersion"], manifest["kind"]]
    schema = {**schemas()[version], "$ref": f"#/$defs/{kind}"}
    found = jsonschema.Draft202012Validator(schema).iter_errors(manifest)
    return [f"{'/'.join(map(str, each.absolute_path))}: {each.message}" for each in found]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_it_fits_the_description_of_the_api(name: str, version: str) -> None:
    for each in of(name):
        if each["kind"] not in OPERATORS:
            assert complaints(each, version) == [], each["metadata"]["name"]


def _misspell(owner: Manifest) -> None:
    spec_of(owner)["containers"][0]["livenessprobe"] = {}


def _make_a_port_a_word(owner: Manifest) -> None:
    spec_of(owner)["containers"][0]["ports"][0]["containerPort"] = "metrics"


def _make_a_value_a_number(owner: Manifest) -> None:
    spec_of(owner)["containers"][0]["env"][1]["value"] = 3


def _leave_the_selector_out(owner: Manifest) -> None:
    del owner["spec"]["selector"]


BROKEN: Final[dict[str, Callable[[Manifest], None]]] = {
    "a misspelt key": _misspell,
    "a port that is no number": _make_a_port_a_word,
    "a value that is no text": _make_a_value_a_number,
    "no selector": _leave_the_selector_out,
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("broken", BROKEN)
def test_the_description_would_refuse(broken: str, version: str) -> None:
    (master,) = (each for each in owners("minimal") if each["metadata"]["name"].endswith("-master"))
    wrong = deepcopy(master)
    BROKEN[broken](wrong)
    assert complaints(wrong, version)


def test_the_name_of_each_is_its_own() -> None:
    for name in NAMES:
        found = [(each["kind"], each["metadata"]["name"]) for each in of(name)]
        assert len(set(found)) == len(found)


# ---------------------------------------------------------------- values


@cache
def values_schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    return loaded


def values(name: str) -> Manifest:
    yaml = YAML(typ="safe")
    defaults = yaml.load((CHART / "values.yaml").read_text("utf-8"))
    return merged(defaults, yaml.load(value_files()[name].read_text("utf-8")))


def merged(under: Manifest, over: Manifest) -> Manifest:
    both = {
        key: merged(under[key], value)
        if isinstance(value, dict) and isinstance(under.get(key), dict)
        else value
        for key, value in over.items()
    }
    return {**under, **both}


@pytest.mark.parametrize("name", NAMES)
def test_values_fit_their_own_schema(name: str) -> None:
    jsonschema.Draft7Validator(values_schema()).validate(values(name))


WRONG_VALUES: Final[dict[str, Manifest]] = {
    "a misspelt key": {"kafka": {"bootstrp": "kafka:9092"}},
    "no broker": {"kafka": {"bootstrap": ""}},
    "a broker without a port": {"kafka": {"bootstrap": "kafka"}},
    "a password in the URL of Redis": {"redis": {"url": "redis://user:pass@redis:6379/0"}},
    "no token": {"snapshots": {"tokenSecret": ""}},
    "a setting of nobody": {"settings": {"PYTHONPATH": "/tmp"}},
    "a secret among settings": {"settings": {"LEASEHOLD_KAFKA_PASSWORD": "hunter2"}},
    "no master": {"master": {"replicas": 0}},
    "a size without a unit": {"replicant": {"storage": {"size": "20"}}},
    "a mode of Spark's that there is not": {"spark": {"mode": "yarn"}},
    "a folder of a pod's own as the place of backups": {"backup": {"place": "/var/backups"}},
    "a password in the place of backups": {"backup": {"place": "s3://key:secret@bucket/path"}},
    "a time that is none": {"backup": {"schedule": "hourly, please"}},
    "to keep one backup, from under an increment of it": {"backup": {"keep": 1}},
    "an hour without a zone to restore to": {"restore": {"toTime": "2026-11-28 21:15"}},
    "a position that is none": {"restore": {"toLsn": "the newest"}},
}


@pytest.mark.parametrize("wrong", WRONG_VALUES)
def test_the_schema_of_the_values_refuses(wrong: str) -> None:
    said = merged(values("minimal"), WRONG_VALUES[wrong])
    assert list(jsonschema.Draft7Validator(values_schema()).iter_errors(said))


# ---------------------------------------------------------------- processes


def test_every_service_of_the_deployment_is_there_with_its_command() -> None:
    for container, service in SERVICES.items():
        found = container_of("secure", container)
        assert found["command"] == list(service.command)
        limit = found["resources"]["limits"]["memory"]
        assert limit == f"{service.memory_mb // 1024}Gi", container
    assert container_of("minimal", "topics")["command"] == ["leasehold", "topics"]


def settings_known() -> set[str]:
    known = {
        variable
        for settings in (
            KafkaSettings(),
            RedisSettings(),
            ClusterSettings(),
            SnapshotSettings(),
            PgwireSettings(),
            DashboardSettings(),
            SqlAddress(),
            RequestKeySettings(),
            AuditSettings(),
            SchemaRegistrySettings(),
            TraceSettings(),
            SparkSettings(),
        )
        for variable in describe(settings)
    }
    known |= {"LEASEHOLD_SQL_USERS_FILE"}
    known |= {item.metadata["env"] for item in IntakeSettings.__dataclass_fields__.values()}
    return known | {f"{variable}_FILE" for variable in known}


def test_every_variable_is_a_setting_and_is_said_once() -> None:
    known = settings_known()
    for name in NAMES:
        for container, _ in containers(name):
            said = [each["name"] for each in container["env"]]
            assert len(set(said)) == len(said), (name, container["name"])
            assert known.issuperset(said), (name, container["name"], set(said) - known)


COMPOSED: Final = {
    "master": "m1",
    "replicant": "r1",
    **{name: name for name in ("changefeed", "spark", "dashboard", "intake", "topics")},
}
ELSEWHERE: Final = frozenset(
    {
        # By the chart for all, and by Compose handed through from the operator's environment.
        *("LEASEHOLD_LOG_FORMAT", "LEASEHOLD_LOG_LEVEL", "LEASEHOLD_METRICS_LISTEN"),
        *("LEASEHOLD_REPLICATION_FACTOR", "LEASEHOLD_DASHBOARD_HOSTS", "LEASEHOLD_DASHBOARD_PORT"),
        *("LEASEHOLD_REGISTRY", "LEASEHOLD_REGISTRY_CA", "LEASEHOLD_REGISTRY_USERNAME"),
        *("LEASEHOLD_REGISTRY_PASSWORD_FILE", "LEASEHOLD_SNAPSHOT_PORT"),
        *("LEASEHOLD_INTAKE", "LEASEHOLD_INTAKE_ROUTES", "LEASEHOLD_INTAKE_LAYOUT"),
        *("LEASEHOLD_SPARK_CONF_FILE", "LEASEHOLD_SQL_PORT", "LEASEHOLD_METRICS_PORT"),
        "LEASEHOLD_SQL_HOST",
    }
)


@pytest.mark.parametrize("container", COMPOSED)
def test_a_process_is_told_what_its_container_of_compose_is(container: str) -> None:
    """Two descriptions of one deployment: what one forgets the other has."""
    compose = YAML(typ="safe").load(SECURE_FILE.read_text("utf-8"))
    service = compose["services"][COMPOSED[container]]
    theirs = {
        variable
        for variable, value in service["environment"].items()
        if not (str(value).startswith("${") and str(value).endswith(":-}"))
    }
    if container == "topics":  # with Docker it is described as a person's command
        theirs = {variable for variable in theirs if not variable.startswith("LEASEHOLD_SQL_")}
    ours = set(variables_of(container_of("secure", container)))
    assert ours - ELSEWHERE == theirs - ELSEWHERE


def test_no_secret_stands_in_an_environment() -> None:
    for name in NAMES:
        for container, _ in containers(name):
            for variable, value in variables_of(container).items():
                if re.search(r"(PASSWORD|TOKEN|SECRET|_KEY|USERS)(_FILE)?$", variable):
                    assert value.startswith("/run/secrets/leasehold/"), (name, variable)


def test_a_file_that_is_named_is_mounted_and_no_other_one() -> None:
    for name in NAMES:
        for container, spec in containers(name):
            named = {
                value.rpartition("/")[2]
                for value in (*variables_of(container).values(), *container["command"])
                if value.startswith("/run/secrets/")
            }
            mounted = {
                item["path"]
                for volume in spec["volumes"]
                if volume["name"] == "secrets"
                for source in volume["projected"]["sources"]
                for item in source["secret"]["items"]
            }
            assert named == mounted, (name, container["name"])


def test_nobody_has_the_password_of_another_one() -> None:
    for name in ("secure", "sentinel"):
        for container, spec in containers(name):
            user = variables_of(container)["LEASEHOLD_KAFKA_USERNAME"]
            given = {
                (source["secret"]["name"], item["key"])
                for volume in spec["volumes"]
                if volume["name"] == "secrets"
                for source in volume["projected"]["sources"]
                for item in source["secret"]["items"]
                if item["path"] in ("kafka-password", "redis-password")
            }
            assert {key for _, key in given} == {user}
            address = variables_of(container).get("LEASEHOLD_REDIS")
            assert address is None or f"://{user}@" in address


# ---------------------------------------------------------------- confinement


def test_every_container_is_nobody_with_a_closed_root() -> None:
    for name in NAMES:
        described = [*containers(name)]
        template = executor_template() if name == "spark" else None
        if template is not None:
            described.append((template["spec"]["containers"][0], template["spec"]))
        for container, spec in described:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            whole = spec["securityContext"]
            assert whole["runAsNonRoot"] is True
            assert (whole["runAsUser"], whole["runAsGroup"], whole["fsGroup"]) == (10_001,) * 3
            assert whole["fsGroupChangePolicy"] == "OnRootMismatch"
            assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
            places = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert {"/var/lib/leasehold", "/tmp"} <= places


def executor_template() -> Manifest:
    (conf,) = (each for each in of("spark") if each["kind"] == "ConfigMap")
    loaded: Manifest = YAML(typ="safe").load(conf["data"]["executor.yaml"])
    return loaded


def test_the_template_of_executors_is_a_pod() -> None:
    template = executor_template()
    # Spark puts the image in.
    template["spec"]["containers"][0]["image"] = "leasehold/spark"
    for version in VERSIONS:
        assert complaints(template, version) == []


def test_nobody_but_sparks_driver_may_ask_the_api() -> None:
    for name in NAMES:
        for owner in owners(name):
            spec = spec_of(owner)
            asks = spec["automountServiceAccountToken"]
            assert asks == (name == "spark" and owner["metadata"]["name"].endswith("-spark"))


def test_the_images_have_the_user_that_the_manifests_name() -> None:
    for image in ("services", "spark"):
        lines = (CHART.parent.parent / "images" / f"{image}.Dockerfile").read_text("utf-8")
        assert "--system --gid 10001" in lines
        assert "--uid 10001 --gid leasehold" in lines


# ---------------------------------------------------------------- life and death


def test_only_a_loop_that_hangs_has_a_process_started_again() -> None:
    """A probe of liveness that asked for readiness would end all nodes while Kafka is away."""
    for name in NAMES:
        for container, _ in containers(name):
            if container["name"] in ("topics", "operator", "backup", "restore", "test"):
                assert "livenessProbe" not in container
                continue
            ports = {each["name"]: each["containerPort"] for each in container["ports"]}
            assert str(ports["metrics"]) == variables_of(container)["LEASEHOLD_METRICS_PORT"]
            for probe, path in (
                ("startupProbe", "/livez"),
                ("livenessProbe", "/livez"),
                ("readinessProbe", "/readyz"),
            ):
                assert container[probe]["httpGet"] == {"path": path, "port": "metrics"}


def test_whoever_serves_clients_goes_on_until_nobody_sends_more() -> None:
    for container, spec in containers("secure"):
        drains = container["name"] in ("replicant", "dashboard")
        assert drains == ("lifecycle" in container), container["name"]
        if drains:
            (_, seconds) = container["lifecycle"]["preStop"]["exec"]["command"]
            assert spec["terminationGracePeriodSeconds"] > int(seconds) + 10


def test_nodes_and_spark_keep_what_is_theirs() -> None:
    for name in NAMES:
        kept = {
            each["metadata"]["name"]: each for each in owners(name) if each["kind"] == "StatefulSet"
        }
        assert set(kept) == {"leasehold-master", "leasehold-replicant", "leasehold-spark"}
        for each in kept.values():
            (claim,) = each["spec"]["volumeClaimTemplates"]
            mounts = {
                m["name"]: m["mountPath"] for m in spec_of(each)["containers"][0]["volumeMounts"]
            }
            assert mounts[claim["metadata"]["name"]] == "/var/lib/leasehold"


def test_of_what_there_must_not_be_two_the_first_is_gone_before_the_next() -> None:
    for name in NAMES:
        for owner in owners(name):
            component = labels_of(owner)["app.kubernetes.io/component"]
            if component == "changefeed" or component.startswith("intake"):
                assert owner["spec"]["strategy"] == {"type": "Recreate"}
                assert owner["spec"]["replicas"] == 1
            if component == "spark":
                assert (owner["kind"], owner["spec"]["replicas"]) == ("StatefulSet", 1)


def test_several_of_a_kind_are_taken_off_one_at_a_time() -> None:
    for name in NAMES:
        budgets = {
            each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
            for each in of(name)
            if each["kind"] == "PodDisruptionBudget"
        }
        several = {
            labels_of(owner)["app.kubernetes.io/component"]
            for owner in owners(name)
            if owner["kind"] not in ("Job", "CronJob")
            and owner.get("spec", {}).get("replicas", 1) > 1
        }
        assert budgets == several, name


# ---------------------------------------------------------------- backups


def backups(name: str) -> dict[str, Manifest]:
    """The CronJobs of a set of values, each by its name."""
    return {each["metadata"]["name"]: each for each in of(name) if each["kind"] == "CronJob"}


def options_of(owner: Manifest) -> argparse.Namespace:
    """What the command itself understands of the words of a container."""
    program, *words = spec_of(owner)["containers"][0]["command"]
    assert program == "leasehold"
    return parser("backup").parse_args(words)


def test_backups_are_made_where_they_are_asked_for_and_nowhere_else() -> None:
    for name in NAMES:
        wanted = values(name)["backup"]["enabled"]
        suffixes = ("backup", "backup-full", "backup-verify") if wanted else ()
        assert set(backups(name)) == {f"leasehold-{each}" for each in suffixes}
    assert values("minimal")["backup"]["enabled"] is False


@pytest.mark.parametrize("name", ["secure", "observed"])
def test_the_command_takes_what_a_backup_is_told(name: str) -> None:
    made = backups(name)
    for each in made.values():
        options = options_of(each)
        mounts = spec_of(each)["containers"][0]["volumeMounts"]
        assert str(options.work) == "/var/lib/leasehold"
        if name == "secure":
            assert options.place == "s3://leasehold-backups/demo"
            assert str(options.key_file) == "/run/secrets/leasehold/backup-key"
            assert options.rate == 50
        else:
            assert {"name": "backups", "mountPath": options.place} in mounts
            assert (options.key_file, options.rate) == (None, None)
    every, full = (options_of(made[f"leasehold-{each}"]) for each in ("backup", "backup-full"))
    assert (every.full, every.keep, full.full, full.keep) == (False, None, True, 4)
    assert options_of(made["leasehold-backup-verify"]).run is verify


def test_one_backup_at_a_time_within_bounds_and_its_findings_are_not_tried_away() -> None:
    for name in ("secure", "observed"):
        for each in backups(name).values():
            spec = each["spec"]
            assert spec["concurrencyPolicy"] == "Forbid"
            job = spec["jobTemplate"]["spec"]
            assert job["activeDeadlineSeconds"] == 21_600
            (rule,) = job["podFailurePolicy"]["rules"]
            assert rule["action"] == "FailJob"
            refused = rule["onExitCodes"]
            assert refused["values"] == [ExitCode.NOT_RIGHT, ExitCode.USAGE]
            assert refused["containerName"] == spec_of(each)["containers"][0]["name"]
            # Without it the API takes no such policy.
            assert spec_of(each)["restartPolicy"] == "Never"
            (data,) = (v for v in spec_of(each)["volumes"] if v["name"] == "data")
            assert data["emptyDir"]["sizeLimit"] == "20Gi", "room for a copy of a store"
    suspended = {each: made["spec"]["suspend"] for each, made in backups("observed").items()}
    assert suspended == {
        "leasehold-backup": False,
        "leasehold-backup-full": False,
        "leasehold-backup-verify": True,
    }


def test_a_backup_has_no_more_than_it_needs() -> None:
    """It comes to Kafka as a user of its own, to Redis not at all, and hands out no snapshots."""
    for each in backups("secure").values():
        told = variables_of(spec_of(each)["containers"][0])
        assert told["LEASEHOLD_KAFKA_USERNAME"] == "backup"
        assert told["LEASEHOLD_SNAPSHOT_TOKEN_FILE"]
        assert told["LEASEHOLD_SNAPSHOT_TLS_CA"]
        lacking = ("REDIS", "REDIS_PASSWORD_FILE", "REQUEST_KEY_FILE", "SNAPSHOT_TLS_KEY")
        assert not {f"LEASEHOLD_{name}" for name in lacking} & told.keys()
        (source,) = spec_of(each)["containers"][0]["envFrom"]
        assert source == {"secretRef": {"name": "leasehold-object-store"}}
    kind = KIND_NAMED["backup"]
    assert kind.writes == ()
    assert kind.redis_rules("demo") is None


def test_backups_outlive_the_release() -> None:
    (claim,) = (each for each in of("observed") if each["kind"] == "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    for each in backups("observed").values():
        (volume,) = (v for v in spec_of(each)["volumes"] if v["name"] == "backups")
        assert volume["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}


def test_nodes_hand_copies_to_nodes_and_backups_alone() -> None:
    for name in NAMES:
        port = values(name)["snapshots"]["port"]
        (nodes,) = (each for each in policies(name) if each["metadata"]["name"].endswith("-nodes"))
        ((rule),) = nodes["spec"]["ingress"]
        assert [each["port"] for each in rule["ports"]] == [port]
        let_in = {
            labels_of(owner)["app.kubernetes.io/component"]
            for owner in owners(name)
            if any(matches(peer["podSelector"], labels_of(owner)) for peer in rule["from"])
        }
        made = {"backup"} if backups(name) else set()
        assert let_in == {"master", "replicant"} | made, name


def test_a_backup_may_go_to_nodes_and_to_a_bucket_where_there_is_one() -> None:
    for name, ports in (("secure", [7432, 443]), ("observed", [7432])):
        (own,) = (each for each in policies(name) if each["metadata"]["name"].endswith("-backup"))
        for each in backups(name).values():
            assert matches(own["spec"]["podSelector"], labels_of(each))
        assert [rule["ports"][0]["port"] for rule in own["spec"]["egress"]] == ports
        (to,) = own["spec"]["egress"][0]["to"]
        reached = {
            labels_of(owner)["app.kubernetes.io/component"]
            for owner in owners(name)
            if matches(to["podSelector"], labels_of(owner))
        }
        assert reached == {"master", "replicant"}


# ---------------------------------------------------------------- what is restored


def hooks_of(manifest: Manifest) -> set[str]:
    """When Helm makes it, if not with the release."""
    said = manifest["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    return set(said.split(",")) - {""}


def test_only_who_asks_for_it_restores_and_only_when_it_is_installed() -> None:
    for name in NAMES:
        jobs = {each["metadata"]["name"]: each for each in of(name) if each["kind"] == "Job"}
        topics = hooks_of(jobs["leasehold-topics"])
        if values(name)["restore"]["enabled"]:
            # A name that has topics is one that is in use.
            assert topics == {"pre-upgrade"}
            assert hooks_of(jobs["leasehold-restore"]) == {"pre-install"}
        else:
            assert topics == {"pre-install", "pre-upgrade"}
            assert "leasehold-restore" not in jobs
    assert values("minimal")["restore"]["enabled"] is False


def test_what_is_restored_is_what_the_first_master_begins_with() -> None:
    (job,) = (each for each in owners("restored") if each["metadata"]["name"].endswith("-restore"))
    options = options_of(job)
    assert options.place == "/mnt/backups"
    assert (
        options.database == variables_of(container_of("restored", "master"))["LEASEHOLD_DATABASE"]
    )
    assert list(map(str, options.store)) == ["/var/lib/leasehold/leasehold-master-0/store.db"]
    claimed = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in spec_of(job)["volumes"]
        if "persistentVolumeClaim" in volume
    }
    (masters,) = (
        each
        for each in of("restored")
        if each["metadata"]["name"] == "leasehold-master" and each["kind"] == "StatefulSet"
    )
    (template,) = masters["spec"]["volumeClaimTemplates"]
    # So a StatefulSet names the claim of its first pod.
    assert claimed == {
        "data": f"{template['metadata']['name']}-leasehold-master-0",
        "backups": "leasehold-backups",
    }
    (claim,) = (each for each in of("restored") if each["kind"] == "PersistentVolumeClaim")
    assert claim["metadata"]["name"] == claimed["data"]
    assert claim["spec"] == template["spec"]
    assert hooks_of(claim) == {"pre-install"}
    # Helm's own policy is to delete one that is there: a store.
    assert claim["metadata"]["annotations"]["helm.sh/hook-delete-policy"] == "hook-failed"


def test_who_comes_before_the_release_needs_nothing_of_it() -> None:
    for name in NAMES:
        made = {(each["kind"], each["metadata"]["name"]) for each in of(name) if not hooks_of(each)}
        for owner in owners(name):
            if hooks_of(owner) & {"pre-install"}:
                spec = spec_of(owner)
                account = spec.get("serviceAccountName", "default")
                assert ("ServiceAccount", account) not in made
                maps = [v["configMap"]["name"] for v in spec["volumes"] if "configMap" in v]
                assert not maps


def test_a_restore_has_a_user_of_its_own_and_is_not_tried_again_in_vain() -> None:
    (job,) = (each for each in owners("restored") if each["metadata"]["name"].endswith("-restore"))
    assert values("restored")["kafka"]["users"]["restore"] == "restore"
    told = variables_of(spec_of(job)["containers"][0])
    assert KIND_NAMED["restore"].reads_ledger
    assert told["LEASEHOLD_REDIS"] == "redis://redis:6379/1"
    lacking = ("REQUEST_KEY_FILE", "SNAPSHOT_TOKEN_FILE", "SQL_USERS_FILE")
    assert not {f"LEASEHOLD_{name}" for name in lacking} & told.keys()
    assert job["spec"]["activeDeadlineSeconds"] == 21_600
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["values"] == [ExitCode.NOT_RIGHT, ExitCode.USAGE]
    assert spec_of(job)["restartPolicy"] == "Never"


# ---------------------------------------------------------------- who finds and reaches whom


def matches(selector: Manifest, labels: Mapping[str, str]) -> bool:
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    return all(
        (labels.get(each["key"]) in each["values"]) == (each["operator"] == "In")
        for each in selector.get("matchExpressions", ())
    )


def test_services_find_pods_that_have_their_ports() -> None:
    for name, service in each_manifest("Service"):
        found = [
            owner
            for owner in owners(name)
            if owner["kind"] in ("StatefulSet", "Deployment")
            and service["spec"]["selector"].items() <= labels_of(owner).items()
        ]
        assert found, (name, service["metadata"]["name"])
        for port in service["spec"]["ports"]:
            for owner in found:
                container = spec_of(owner)["containers"][0]
                ports = {each["name"] for each in container.get("ports", ())}
                idle = container["name"] == "operator"
                assert port["targetPort"] in ports or idle, (name, service["metadata"]["name"])


def test_the_names_that_processes_are_told_are_those_of_services() -> None:
    for name in NAMES:
        services = {each["metadata"]["name"] for each in of(name) if each["kind"] == "Service"}
        for container, _ in containers(name):
            for variable in ("LEASEHOLD_ADVERTISE", "LEASEHOLD_SQL_HOST"):
                value = variables_of(container).get(variable, "")
                found = re.fullmatch(r"(?:\$\(LEASEHOLD_NODE\)\.)?([a-z-]+)\.default\.svc", value)
                assert found is None or found[1] in services, (name, value)


def policies(name: str) -> list[Manifest]:
    return [each for each in of(name) if each["kind"] == "NetworkPolicy"]


def test_every_port_that_a_process_listens_on_may_be_reached_and_no_other() -> None:
    for name in NAMES:
        for owner in owners(name):
            if owner["kind"] in ("Job", "CronJob", "Pod"):
                continue
            container = spec_of(owner)["containers"][0]
            listens = {each["containerPort"] for each in container.get("ports", ())}
            allowed: set[int] = set()
            everything = False
            for policy in policies(name):
                if not matches(policy["spec"]["podSelector"], labels_of(owner)):
                    continue
                for rule in policy["spec"].get("ingress", ()):
                    everything |= "ports" not in rule
                    allowed |= {port["port"] for port in rule.get("ports", ())}
            assert everything or allowed >= listens, (name, container["name"])
            spark = container["name"] == "spark" and name == "spark"
            assert everything == spark, (name, container["name"])


def test_every_pod_may_go_to_kafka_and_redis() -> None:
    for name, ports in (
        ("minimal", {53, 9092, 6379}),
        ("secure", {53, 9093, 6379, 8081, 5432}),
        ("sentinel", {53, 9093, 26379, 6379, 5432}),
        ("observed", {53, 9092, 6379, 4318, 5432}),
    ):
        (whole,) = (each for each in policies(name) if each["metadata"]["name"] == "leasehold")
        for owner in owners(name):
            assert matches(whole["spec"]["podSelector"], labels_of(owner))
        allowed = {p["port"] for rule in whole["spec"]["egress"] for p in rule["ports"]}
        assert allowed == ports, name


def test_a_scrape_names_a_process_as_alerts_and_boards_do() -> None:
    ((name, monitor),) = each_manifest("ServiceMonitor")
    selector = monitor["spec"]["selector"]
    (service,) = (
        each
        for each in of(name)
        if each["kind"] == "Service" and matches(selector, each["metadata"]["labels"])
    )
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    labels = {each["targetLabel"]: each for each in endpoint["relabelings"]}
    assert labels["node"]["sourceLabels"] == ["__meta_kubernetes_pod_name"]
    assert labels["job"]["replacement"] == "leasehold"
    assert 'up{job=\\"leasehold\\"}' in rules()
