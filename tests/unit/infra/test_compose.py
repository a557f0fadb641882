"""docker-compose.yml is what infra/deployment.py says, and is valid by the specification."""

from __future__ import annotations

import importlib.resources
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra import compose
from infra.compose import (
    ASK_READY,
    FILE,
    PASSED_THROUGH,
    PASSED_TO_DASHBOARD,
    PASSED_TO_FEEDS,
    PASSED_TO_NODES,
    PASSED_TO_SIGNERS,
    PASSED_TO_SQL,
    compose_file,
)
from infra.deployment import OPTIONAL, SERVICES
from infra.ports import METRICS_PORT
from leasehold.settings.audit import AuditSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    describe,
)
from leasehold.settings.request_key import RequestKeySettings
from leasehold.settings.schema_registry import SchemaRegistrySettings
from leasehold.settings.snapshot import SnapshotSettings
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from leasehold.settings.traces import TraceSettings
from tests.support.containers.image import read_image


def committed() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(FILE.read_text(encoding="utf-8"))
    return loaded


def schema() -> dict[str, Any]:
    folder = importlib.resources.files("check_jsonschema.builtin_schemas")
    text = (folder / "vendor" / "compose-spec.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def test_the_committed_files_are_the_generated_ones() -> None:
    assert compose.main(["--check"]) == 0, "run: make compose"


def test_the_check_names_what_is_stale_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    same, old, missing = (tmp_path / name for name in ("same.yml", "old.yml", "missing.yml"))
    same.write_text("same", encoding="utf-8")
    old.write_text("old", encoding="utf-8")
    monkeypatch.setattr(compose, "files", lambda: {same: "same", old: "new", missing: "made"})
    assert compose.main(["--check"]) == 1
    told = capsys.readouterr()
    assert told.out.splitlines() == ["compose: old.yml: stale", "compose: missing.yml: stale"]
    assert "python -m infra.compose" in told.err
    assert old.read_text(encoding="utf-8") == "old"
    assert not missing.exists()
    assert compose.main([]) == 0
    assert (old.read_text("utf-8"), missing.read_text("utf-8")) == ("new", "made")
    assert compose.main(["--check"]) == 0


def test_it_reads_back_as_described() -> None:
    assert committed() == compose_file()


def test_it_fits_the_compose_specification() -> None:
    jsonschema.Draft7Validator(schema()).validate(committed())


def test_the_schema_would_refuse_a_mistake() -> None:
    """The check above is worth something: a misspelt key does not pass."""
    wrong = committed()
    wrong["services"]["m1"]["depend_on"] = wrong["services"]["m1"].pop("depends_on")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema()).validate(wrong)


def test_every_service_of_the_deployment_is_there() -> None:
    services = committed()["services"]
    assert set(services) == {"kafka", "redis", "topics", *(s.name for s in (*SERVICES, *OPTIONAL))}
    for service in SERVICES:
        assert services[service.name]["command"] == list(service.command)
        assert services[service.name]["environment"]["LEASEHOLD_NODE"] == service.name


def test_no_container_can_take_the_host_with_it() -> None:
    services = committed()["services"]
    for name, service in services.items():
        assert service["pids_limit"], name
        if name not in ("kafka", "redis"):  # which begin as root and give that up by themselves
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert service["read_only"] is True, name
            assert service["tmpfs"] == ["/tmp"], name
        if name != "topics":  # over in seconds
            assert service["mem_limit"], name


def test_a_container_is_healthy_when_its_process_says_that_it_is_ready() -> None:
    """A file that was once written would say so for ever."""
    services = committed()["services"]
    for service in (*SERVICES, *OPTIONAL):
        described = services[service.name]
        assert described["healthcheck"]["test"] == list(ASK_READY)
        port = described["environment"]["LEASEHOLD_METRICS_PORT"]
        assert port == f"${{LEASEHOLD_METRICS_PORT:-{METRICS_PORT}}}"
        image = read_image(FILE.parent / "infra" / "images" / f"{service.image}.Dockerfile")
        assert image.check == ASK_READY[1:], "the image has the same"
        assert image.environment["LEASEHOLD_METRICS_PORT"] == str(METRICS_PORT)
    assert services["topics"]["healthcheck"] == {"disable": True}


def test_images_are_of_nobody_who_could_write_to_them() -> None:
    for name in ("services", "spark"):
        image = read_image(FILE.parent / "infra" / "images" / f"{name}.Dockerfile")
        assert (image.uid, image.gid, image.folder) == (10_001, 10_001, "/opt/leasehold")


def test_whatever_is_needed_exists_and_is_waited_for() -> None:
    services = committed()["services"]
    volumes = set(committed()["volumes"])
    for name, service in services.items():
        for needed, condition in service.get("depends_on", {}).items():
            assert needed in services, f"{name} needs {needed}"
            healthy = condition["condition"] == "service_healthy"
            assert not healthy or "healthcheck" in services[needed]
        assert {volume.split(":")[0] for volume in service.get("volumes", [])} <= volumes


def test_ports_are_published_on_the_loopback_address_only() -> None:
    for service in committed()["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_no_container_fills_the_disk_with_what_it_says() -> None:
    for name, service in committed()["services"].items():
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name


def test_spark_takes_what_the_others_leave() -> None:
    services = committed()["services"]
    assert services["spark"]["cpu_shares"] == 655  # niceness 2, by the kernel's own table
    assert not any("cpu_shares" in services[each.name] for each in SERVICES if each.name != "spark")


def test_whoever_ends_is_started_again_and_the_services_have_an_init() -> None:
    """A node whose disk was full goes on when there is room; SIGTERM reaches who starts."""
    services = committed()["services"]
    assert {service["restart"] for service in services.values()} == {
        "unless-stopped",
        "on-failure:5",  # the topics are made once
    }
    assert all(services[service.name]["init"] is True for service in SERVICES)


def test_the_services_image_runs_the_build_that_it_makes() -> None:
    lines = (FILE.parent / "infra/images/services.Dockerfile").read_text().splitlines()
    (said,) = (line.split("=", 1)[1] for line in lines if line.startswith("ENV PYTHONPATH="))
    (folder,) = (line.split()[-1] for line in lines if line.startswith("COPY --from=compiled"))
    assert any(line.endswith(f"{said.removeprefix('/opt/leasehold/')}") for line in lines)
    assert said.startswith(f"{folder}/")
    assert any("LEASEHOLD_COMPILED=always python -m infra.compiled build" in line for line in lines)
    assert lines.index("USER leasehold") > lines.index(f"ENV PYTHONPATH={said}")


def test_secrets_of_the_operator_do_not_reach_the_images() -> None:
    ignored = (FILE.parent / ".dockerignore").read_text().splitlines()
    assert {".env", "leasehold.env", ".git"} <= set(ignored)


def test_snapshots_are_for_nodes_that_know_the_secret() -> None:
    """Their listeners are open to every container of the network, and hold every row."""
    secrets = committed()["secrets"]
    for service in SERVICES:
        described = committed()["services"][service.name]
        environment = described["environment"]
        assert "LEASEHOLD_SNAPSHOT_TOKEN" not in environment, "a secret shown by docker inspect"
        assert service.keeps_store == ("secrets" in described)
        if service.keeps_store:
            (name,) = described["secrets"]
            assert environment["LEASEHOLD_SNAPSHOT_TOKEN_FILE"] == f"/run/secrets/{name}"
            assert secrets[name] == {"environment": "LEASEHOLD_SNAPSHOT_TOKEN"}


def test_every_variable_that_it_sets_is_a_setting() -> None:
    """A misspelt variable would be silently without effect."""
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
        )
        for variable in describe(settings)
    }
    known |= {f"{variable}_FILE" for variable in known}
    assert known.issuperset(
        {
            *PASSED_THROUGH,
            *PASSED_TO_NODES,
            *PASSED_TO_SQL,
            *PASSED_TO_DASHBOARD,
            *PASSED_TO_SIGNERS,
            *PASSED_TO_FEEDS,
        }
    )
    for service in SERVICES:
        assert known.issuperset(committed()["services"][service.name]["environment"])
