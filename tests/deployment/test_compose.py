"""docker-compose.yml is valid, and runs what there is."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed_commands import check_command, check_settings
from deployment_schemas import violations_of_compose

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
SERVICES: dict[str, Any] = yaml.safe_load(TEXT)["services"]
OURS = sorted(name for name, found in SERVICES.items() if "build" in found)
SCALED = sorted(name for name in OURS if name.endswith("worker"))


def test_it_is_valid() -> None:
    assert violations_of_compose(yaml.safe_load(TEXT)) == []


def test_the_schema_tells() -> None:
    wrong = {"services": {"api": {"command": "howsure serve", "restarts": "always"}}}

    (violation,) = violations_of_compose(wrong)

    assert "restarts" in violation


@pytest.mark.parametrize("name", OURS)
def test_each_command_is_one_that_there_is(name: str) -> None:
    check_command(SERVICES[name]["command"])


@pytest.mark.parametrize(
    "command",
    ["howsure serves", "howsure serve --no-workers", "howsure worker --workers none"],
)
def test_a_command_that_there_is_not_is_found(command: str) -> None:
    with pytest.raises(pytest.fail.Exception):
        check_command(command.split())


def test_settings_are_those_that_there_are() -> None:
    check_settings(TEXT)


def test_what_others_wait_for_has_a_health_check() -> None:
    for found in SERVICES.values():
        for awaited, terms in found.get("depends_on", {}).items():
            assert terms["condition"] == "service_healthy"
            assert "test" in SERVICES[awaited]["healthcheck"]


@pytest.mark.parametrize(
    ("profile", "started"),
    [
        ("cpu", {"api", "worker"}),
        ("gpu", {"gpu-api", "gpu-worker"}),
        ("cluster", {"api", "worker", "scheduler", "dask-worker"}),
        ("gpu-cluster", {"gpu-api", "gpu-worker", "scheduler", "gpu-dask-worker"}),
    ],
)
def test_a_profile_starts_all_that_a_calibration_needs(profile: str, started: set[str]) -> None:
    always = {name for name, found in SERVICES.items() if "profiles" not in found}
    ours = {name for name, found in SERVICES.items() if profile in found.get("profiles", [])}
    ports = [port for name in ours for port in SERVICES[name].get("ports", [])]

    assert (always, ours) == ({"postgres", "s3"}, started)
    assert ports == ["127.0.0.1:8000:8000"]


@pytest.mark.parametrize("name", SCALED)
def test_workers_can_be_scaled(name: str) -> None:
    assert not {"container_name", "ports"} & SERVICES[name].keys()


def test_what_needs_a_gpu_reserves_one_and_has_the_image_for_it() -> None:
    for name in OURS:
        has_gpu = name.startswith("gpu-")
        assert (SERVICES[name]["build"]["target"] == "cuda") == has_gpu
        assert SERVICES[name]["image"] == ("howsure:cuda" if has_gpu else "howsure:cpu")
        assert ("deploy" in SERVICES[name]) == has_gpu


def test_images_are_pinned_and_nothing_but_the_api_is_published_here_alone() -> None:
    for name, found in SERVICES.items():
        assert re.fullmatch(r"[\w./-]+:[\w.-]+", found["image"])
        assert not found["image"].endswith(":latest")
        for port in found.get("ports", []):
            assert name.endswith("api")
            assert port.startswith("127.0.0.1:")


def test_the_commands_that_it_shows_name_its_services_and_profiles() -> None:
    profiles = {found for service in SERVICES.values() for found in service.get("profiles", [])}
    shown = "\n".join(line for line in TEXT.splitlines() if line.startswith("#"))

    assert set(re.findall(r"--profile (\S+)", shown)) <= profiles
    assert set(re.findall(r"--scale (\S+)=", shown)) <= SERVICES.keys()
