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


def test_extras_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {extra for group in re.findall(r'"\.\[([\w,]+)\]"', TEXT) for extra in group.split(",")}

    assert named
    assert named <= project["optional-dependencies"].keys()


def test_stages_are_defined_before_use() -> None:
    stages: list[str] = []
    for instruction, rest in INSTRUCTIONS:
        if instruction == "FROM":
            base, _, stage = rest.partition(" AS ")
            assert base in stages or re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+", base)
            stages.append(stage)
        elif found := re.search(r"--from=(\S+)", rest):
            assert found[1] in stages
    # What `docker build` makes without a target is the last one.
    assert stages[-1] == "cpu"
    assert "cuda" in stages


def test_the_image_runs_as_an_unprivileged_user() -> None:
    # Kubernetes' runAsNonRoot takes numbers alone.
    assert arguments("USER") == ["10001:10001"]


def test_its_health_check_is_a_program_that_is_copied() -> None:
    (check,) = arguments("HEALTHCHECK")
    program, path = json.loads(check[check.index("[") :])

    assert program == "python"
    assert any(path in rest and "docker/healthcheck.py" in rest for rest in arguments("COPY"))
    ast.parse((ROOT / "docker" / "healthcheck.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-cuda.lock"])
def test_locked_packages_have_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    pinned = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]

    assert len(pinned) > 20
    assert all("--hash=sha256:" in entry for entry in pinned)


def test_both_locks_have_the_same_versions() -> None:
    cpu, cuda = (versions(f"requirements{kind}.lock") for kind in ("", "-cuda"))

    assert {name: cuda[name] for name in cuda.keys() & cpu.keys()} == {
        name: cpu[name] for name in cuda.keys() & cpu.keys()
    }
    assert any(fnmatch(name, "nvidia-cudnn-cu*") for name in cuda)
    assert not any(name.startswith("nvidia-") for name in cpu)


def versions(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)", text, re.MULTILINE))
