"""What exists is documented, and what is documented exists."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from fastapi import FastAPI

from howsure.statistics.findings import FINDINGS
from service.app import create_app
from service.cli import COMMANDS, load_command
from service.errors import ModelRule
from service.settings import Settings
from service.shared_amounts import Line

ROOT = Path(__file__).parents[2]


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def headings(name: str, pattern: str) -> list[str]:
    """Return what a pattern finds at the beginnings of a document's lines."""
    return [found.strip() for found in re.findall(pattern, document(name), re.MULTILINE)]


def routes() -> set[str]:
    app: FastAPI = create_app(Settings(_env_file=None))
    paths = app.openapi()["paths"]
    return {f"{method.upper()} {path}" for path, found in paths.items() for method in found}


def commands() -> set[str]:
    """Return every command, those of groups with the name of their group."""
    names = set()
    for name in (name for group in COMMANDS.values() for name in group):
        subcommands = getattr(load_command(name), "commands", {})
        names |= {f"{name} {sub}" for sub in subcommands} or {name}
    return names


@cache
def existing(kind: str) -> set[str]:
    of_kind: dict[str, Callable[[], Iterable[str]]] = {
        "setting": lambda: (f"HOWSURE_{name.upper()}" for name in Settings.model_fields),
        "route": routes,
        "command": commands,
        "rule": lambda: ModelRule,
        "finding": lambda: FINDINGS,
        "limit": lambda: (f"`{line.title}` | {line.what}" for line in Line),
    }
    return set(of_kind[kind]())


DOCUMENTED = {
    "setting": headings("settings.md", r"^\| `(HOWSURE_\w+)`"),
    "route": headings("http.md", r"^## `([A-Z]+ /\S*)`"),
    "command": headings("cli.md", r"^## `howsure ([a-z -]+)"),
    "rule": re.findall(r"`([\w-]+)`", "".join(headings("model-gate.md", r"^\| (`.*?`) \|"))),
    "finding": headings("findings.md", r"^## ([a-z-]+)$"),
    "limit": headings("limits.md", r"^\| (`[a-z-]+` \| [^|]+) \|"),
}
NAMES = [(kind, name) for kind, names in DOCUMENTED.items() for name in sorted({*names})]


@pytest.mark.parametrize("kind", DOCUMENTED)
def test_everything_is_documented(kind: str) -> None:
    assert existing(kind) - {*DOCUMENTED[kind]} == set()


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_what_is_documented_exists(kind: str, name: str) -> None:
    assert name in existing(kind)


def test_every_rule_for_models_is_documented_once() -> None:
    assert sorted(DOCUMENTED["rule"]) == sorted(ModelRule)


PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """Howsure is not published: a name alone installs nothing, or what somebody else publishes."""
    texts = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*")]
    texts += [*(ROOT / "service").rglob("*"), *(ROOT / "howsure").rglob("*")]
    suffixes = {".md", ".py", ".ipynb", ".jinja", ".html", ".js", ".mjs", ".yaml"}
    read = [path for path in texts if path.suffix in suffixes and "node_modules" not in path.parts]
    assert len(read) > 400
    by_name = re.compile(r"pip install (?:-\S+ )*['\"]?howsure(?!-|\[[\w,]+\] @ file:)")
    found = [path.name for path in read if by_name.search(path.read_text(encoding="utf-8"))]
    assert found == []
