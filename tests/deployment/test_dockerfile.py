"""The Dockerfile copies and runs existing files, and its locks agree."""

import json
import re
import tomllib
from pathlib import Path

from deployment_files import DOCKERFILE, ROOT

# Instructions, lines that are continued joined, comments left out.
LINES = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.MULTILINE)).splitlines()
INSTRUCTIONS = [tuple(line.split(maxsplit=1)) for line in LINES if line.strip()]
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def arguments(instruction: str) -> list[str]:
    return [rest for name, rest in INSTRUCTIONS if name == instruction]


def copied() -> set[str]:
    """Return what is copied from the checkout."""
    words = [rest.split() for rest in arguments("COPY") if "--from=" not in rest]
    return {word for line in words for word in line[:-1] if not word.startswith("--")}


def test_files_of_the_wheel_are_there_sent_and_copied() -> None:
    for path in copied():
        assert (ROOT / path).exists()
        assert f"!{path}" in IGNORED
    assert IGNORED[1] == "*"
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], PROJECT["readme"]}
    needed |= set(PROJECT["license-files"])
    assert {
        path for path in needed if not {path, *map(str, Path(path).parents)} & copied()
    } == set()


def test_the_image_has_its_version_its_user_and_its_health_check() -> None:
    assert f'org.opencontainers.image.version="{PROJECT["version"]}"' in " ".join(
        arguments("LABEL")
    )
    # Kubernetes' runAsNonRoot takes numbers alone.
    assert arguments("USER") == ["10001:10001"]
    (check,) = arguments("HEALTHCHECK")
    _, path = json.loads(check[check.index("[") :])
    assert any(path in rest and "docker/healthcheck.py" in rest for rest in arguments("COPY"))


def versions(kind: str) -> dict[str, str]:
    """Return the versions in a lock, of which each entry has a digest."""
    text = (ROOT / f"requirements{kind}.lock").read_text(encoding="utf-8")
    pinned = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(pinned) > 20
    assert all("--hash=sha256:" in entry for entry in pinned)
    return dict(re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==(\S+)", text, re.MULTILINE))


def test_all_locks_have_hashes_and_the_same_versions() -> None:
    tests, cpu, cuda = map(versions, ("", "-cpu", "-cuda"))
    for lock in (cpu, cuda):
        shared = lock.keys() & tests.keys()
        assert {name: lock[name] for name in shared} == {name: tests[name] for name in shared}
        assert lock.keys() >= {"pyarrow", "distributed"}
    assert any(name.startswith("nvidia-cudnn-cu") for name in cuda)
    assert not any(name.startswith("nvidia-") for name in tests.keys() | cpu.keys())
    assert "onnxruntime-gpu" not in cpu
    assert cpu["onnxruntime"] == cuda["onnxruntime-gpu"]
