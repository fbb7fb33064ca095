"""What exists is documented, and what is documented exists."""

import re
from pathlib import Path

from fastapi import FastAPI

from howsure.statistics.findings import FINDINGS
from service.app import create_app
from service.cli import COMMANDS, load_command
from service.errors import ModelRule
from service.settings import Settings

ROOT = Path(__file__).parents[2]


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_setting_is_documented() -> None:
    documented = set(re.findall(r"^\| `(HOWSURE_\w+)`", document("settings.md"), re.MULTILINE))

    assert documented == {f"HOWSURE_{name.upper()}" for name in Settings.model_fields}


def test_every_route_is_documented() -> None:
    app: FastAPI = create_app(Settings(_env_file=None))
    routes = {
        f"{method.upper()} {path}"
        for path, operations in app.openapi()["paths"].items()
        for method in operations
    }
    documented = set(re.findall(r"^## `([A-Z]+ /\S*)`", document("http.md"), re.MULTILINE))

    assert documented == routes


def test_every_command_is_documented() -> None:
    documented = set(re.findall(r"^## `howsure ([a-z -]+)", document("cli.md"), re.MULTILINE))
    names = set()
    for name in (name for commands in COMMANDS.values() for name in commands):
        subcommands = getattr(load_command(name), "commands", {})
        names |= {f"{name} {sub}" for sub in subcommands} or {name}

    assert {name.strip() for name in documented} == names


def test_every_rule_for_models_is_documented_once() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", document("model-gate.md"), re.MULTILINE)
    documented = [name.strip("`") for row in rows for name in row.split(", ")]

    assert sorted(documented) == sorted(ModelRule)


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """Howsure is not published: a name alone installs nothing, or what somebody else publishes."""
    texts = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*")]
    texts += [*(ROOT / "service").rglob("*"), *(ROOT / "howsure").rglob("*")]
    suffixes = {".md", ".py", ".ipynb", ".jinja", ".html", ".js", ".mjs", ".yaml"}
    read = [path for path in texts if path.suffix in suffixes and "node_modules" not in path.parts]
    assert len(read) > 400
    by_name = re.compile(r"pip install (?:-\S+ )*['\"]?howsure(?!-|\[\w+\] @ file:)")
    found = [path.name for path in read if by_name.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_every_finding_has_a_section() -> None:
    headings = set(re.findall(r"^## ([a-z-]+)$", document("findings.md"), re.MULTILINE))

    assert headings == {*FINDINGS}
