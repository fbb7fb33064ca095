"""The Dockerfile copies and runs existing files."""

import ast
import json
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
# Instructions, lines that are continued joined, comments left out.
LINES = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
INSTRUCTIONS = [tuple(line.split(maxsplit=1)) for line in LINES if line.strip()]
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def arguments(instruction: str) -> list[str]:
    return [rest for found, rest in INSTRUCTIONS if found == instruction]


def copied() -> list[str]:
    """Return what is copied from the checkout."""
    words = [rest.split() for rest in arguments("COPY") if "--from=" not in rest]
    return [word for line in words for word in line[:-1] if not word.startswith("--")]


@pytest.mark.parametrize("path", copied())
def test_copied_files_exist_and_are_sent(path: str) -> None:
    assert (ROOT / path).exists()
    assert f"!{path}" in IGNORED
    assert IGNORED[1] == "*"


def test_files_of_the_wheel_are_copied() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], project["project"]["readme"]}

    there = set(copied())

    def is_copied(path: str) -> bool:
        return any(path == found or path.startswith(f"{found}/") for found in there)

    missing = {p for p in needed | set(project["project"]["license-files"]) if not is_copied(p)}
    assert not missing


def test_stages_are_defined_before_use() -> None:
    stages: list[str] = []
    for instruction, rest in INSTRUCTIONS:
        if instruction == "FROM":
            base, _, stage = rest.partition(" AS ")
            assert base in stages or re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", base)
            stages.append(stage or base)
        elif found := re.search(r"--from=(\S+)", rest):
            assert found[1] in stages
    # `docker build` without a target makes the last one. Old builders build all stages above.
    assert stages[-1] == "cpu"
    assert stages.index("cpu") < stages.index("build-cuda") < stages.index("cuda")


@pytest.mark.parametrize("newer", ["--chmod", "--start-interval", "--mount", "--link", "<<"])
def test_docker_20_and_podman_4_know_all_instructions(newer: str) -> None:
    assert newer not in "\n".join(LINES)


def test_labels_name_the_version_and_the_license() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    label = " ".join(arguments("LABEL"))

    assert f'org.opencontainers.image.version="{project["version"]}"' in label
    assert f'org.opencontainers.image.licenses="{project["license"]}"' in label
    assert 'org.opencontainers.image.revision="$REVISION"' in label


def test_the_image_runs_as_an_unprivileged_user() -> None:
    # Kubernetes' runAsNonRoot takes numbers alone.
    assert arguments("USER") == ["10001:10001"]


def test_its_health_check_is_a_program_that_is_copied() -> None:
    (check,) = arguments("HEALTHCHECK")
    program, path = json.loads(check[check.index("[") :])

    assert program == "python"
    assert any(path in rest and "docker/healthcheck.py" in rest for rest in arguments("COPY"))
    ast.parse((ROOT / "docker" / "healthcheck.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["", "-cpu", "-cuda"])
def test_locked_packages_have_hashes(kind: str) -> None:
    text = (ROOT / f"requirements{kind}.lock").read_text(encoding="utf-8")
    pinned = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]

    assert len(pinned) > 20
    assert all("--hash=sha256:" in entry for entry in pinned)


def test_all_locks_have_the_same_versions() -> None:
    tests, cpu, cuda = (versions(f"requirements{kind}.lock") for kind in ("", "-cpu", "-cuda"))

    for lock in (cpu, cuda):
        shared = lock.keys() & tests.keys()
        assert {name: lock[name] for name in shared} == {name: tests[name] for name in shared}
    assert any(fnmatch(name, "nvidia-cudnn-cu*") for name in cuda)
    assert not any(name.startswith("nvidia-") for name in tests.keys() | cpu.keys())


def test_the_cpu_image_has_the_runtime_without_cuda() -> None:
    cpu, cuda = (versions(f"requirements-{kind}.lock") for kind in ("cpu", "cuda"))

    assert "onnxruntime-gpu" not in cpu
    assert cpu["onnxruntime"] == cuda["onnxruntime-gpu"]
    assert {"pyarrow", "distributed"} <= cpu.keys() & cuda.keys()


def versions(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)", text, re.MULTILINE))
