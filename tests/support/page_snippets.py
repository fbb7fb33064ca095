"""Snippets of a page: taken out of its HTML as a reader copies them, and run."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from web_runtimes import EXAMPLE, require_node

SECONDS = 60


@dataclass
class _Snippets(HTMLParser):
    attribute: str
    found: dict[str, str] = field(default_factory=dict)
    name: str | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        self.name = dict(attrs).get(self.attribute)
        if self.name is not None:
            self.found[self.name] = ""

    def handle_data(self, data: str) -> None:
        if self.name is not None:
            self.found[self.name] += data

    def handle_endtag(self, _: str) -> None:
        self.name = None


def snippets(page: str, attribute: str = "data-snippet") -> dict[str, str]:
    """Return the text of each, by its name."""
    parser = _Snippets(attribute)
    parser.feed(page)
    return parser.found


def run_in_shell(text: str, folder: Path, **environment: str) -> str:
    """Return what a command prints; a key comes from the environment, and Python is this one."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return _run(["bash", "-euc", text], folder, PATH=path, **environment)


def run_python(text: str, folder: Path, **environment: str) -> str:
    """Return what a program prints."""
    return _run([sys.executable, "-c", text], folder, **environment)


def run_node(text: str, folder: Path) -> str:
    """Return what a module prints, that finds ONNX Runtime Web where npm puts it."""
    require_node()
    (folder / "node_modules").symlink_to(EXAMPLE / "node_modules")
    (folder / "snippet.mjs").write_text(text, encoding="utf-8")
    return _run(["node", "snippet.mjs"], folder)


def fetches(setup: str) -> str:
    """Return the commands of a setup that ask the service, without those that ask registries."""
    lines = setup.replace("\\\n", " ").splitlines()
    return "\n".join(line for line in lines if shlex.split(line)[0] == "curl")


def _run(words: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
