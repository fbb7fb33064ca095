"""docker-compose.yml starts what a calibration needs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from deployment_files import COMPOSE, SERVICES

OURS = sorted(name for name, found in SERVICES.items() if "build" in found)


AWAITED = [
    pytest.param(awaited, terms, id=f"{name}, {awaited}")
    for name, service in SERVICES.items()
    for awaited, terms in service.get("depends_on", {}).items()
]


@pytest.mark.parametrize(("awaited", "terms"), AWAITED)
def test_awaited_services_have_a_health_check(awaited: str, terms: dict[str, str]) -> None:
    if awaited == "secrets":
        assert terms["condition"] == "service_completed_successfully"
        return
    assert terms["condition"] == "service_healthy"
    # The image of the service has a check of its own.
    assert awaited.endswith("api") or "test" in SERVICES[awaited]["healthcheck"]


@pytest.mark.parametrize(
    ("profile", "started"),
    [
        ("cpu", {"api", "worker"}),
        ("gpu", {"gpu-api", "gpu-worker"}),
        ("ha", {"ha-api", "proxy", "worker"}),
        ("cluster", {"api", "worker", "scheduler", "dask-worker"}),
        ("gpu-cluster", {"gpu-api", "gpu-worker", "scheduler", "gpu-dask-worker"}),
    ],
)
def test_a_profile_starts_all_that_a_calibration_needs(profile: str, started: set[str]) -> None:
    always = {name for name, found in SERVICES.items() if "profiles" not in found}
    ours = {name for name, found in SERVICES.items() if profile in found.get("profiles", [])}
    ports = [port for name in ours for port in SERVICES[name].get("ports", [])]

    assert (always, ours) == ({"secrets", "postgres", "s3"}, started)
    assert ports == ["127.0.0.1:8000:8000"]


def made_secrets(folder: Path, **variables: str) -> dict[str, str]:
    """Run the script of the service `secrets`; return the lines of its .env."""
    interpreter, options, script = SERVICES["secrets"]["entrypoint"]
    script = script.replace("$$", "$").replace("/secrets", str(folder))
    given = {"POSTGRES_PASSWORD": "", "S3_SECRET_KEY": ""} | variables
    command = [str(shutil.which(interpreter)), options, script]
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"], **given})
    lines = (folder / ".env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.process
def test_the_first_start_makes_random_passwords(tmp_path) -> None:
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    first, other = map(made_secrets, folders)
    assert first.keys() == {"HOWSURE_DATABASE_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    of_store = (folders[0] / "store" / ".env").read_text(encoding="utf-8").splitlines()
    assert [line.partition("=")[0] for line in of_store] == [*first][1:]
    password = (folders[0] / "POSTGRES_PASSWORD").read_text(encoding="utf-8")
    assert re.fullmatch("[0-9a-f]{48}", password)
    assert f":{password}@postgres:" in first["HOWSURE_DATABASE_URL"]
    assert re.fullmatch("[0-9a-f]{48}", first["AWS_SECRET_ACCESS_KEY"])
    assert first["AWS_SECRET_ACCESS_KEY"] not in (password, other["AWS_SECRET_ACCESS_KEY"])
    assert made_secrets(folders[0]) == first
    own = made_secrets(folders[0], POSTGRES_PASSWORD="own", S3_SECRET_KEY="too")  # noqa: S106 - nobody's
    assert ":own@" in own["HOWSURE_DATABASE_URL"]
    assert own | {"AWS_SECRET_ACCESS_KEY": "too"} == own


@pytest.mark.parametrize("name", SERVICES)
def test_containers_have_no_rights_and_networks_that_they_need(name: str) -> None:
    """The filer of the store asks for no key: who shares its network has the key anyway."""
    found = SERVICES[name]
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert (found.get("cap_drop") == ["ALL"]) == (name in OURS or name == "proxy")
    shards = name == "scheduler" or name.endswith("dask-worker")
    assert found.get("read_only", False) == (name in OURS and not shards)
    networks, volumes = set(found.get("networks", [])), " ".join(found.get("volumes", []))
    has_key = "secrets:/secrets" in volumes or "store-key:/secrets" in volumes
    assert "store" not in networks or has_key
    if shards:
        assert networks == ({"dask"} if name == "scheduler" else {"dask", "store"})
        assert "secrets:/secrets" not in volumes
        assert "HOWSURE_KEY_PEPPER" not in found["environment"]


def test_no_password_is_published() -> None:
    named = [
        line for line in COMPOSE.splitlines() if re.search("(PASSWORD|SECRET|KEY)[A-Z_]*:", line)
    ]
    assert named
    assert all(re.search(r": (\$\{\w+:-\}|/secrets/\w+)$", line) for line in named)
    assert "://howsure:howsure@" not in COMPOSE


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_only_the_api_is_published_on_loopback(name: str) -> None:
    found = SERVICES[name]
    if name in OURS:
        has_gpu = name.startswith("gpu-")
        assert found["image"] == ("howsure:cuda" if has_gpu else "howsure:cpu")
        assert ("deploy" in found) == has_gpu
    assert re.fullmatch(r"[\w./-]+:[\w.-]+", found["image"])
    assert not found["image"].endswith(":latest")
    for port in found.get("ports", []):
        assert name.endswith("api") or name == "proxy"
        assert port.startswith("127.0.0.1:")
