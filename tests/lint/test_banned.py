"""The service uses no function that executes data."""

import ast
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUFF = Path(sysconfig.get_path("scripts"), "ruff")
PACKAGES = ("service", "models", "migrations")

BANNED = [
    ("import pickle\n", "TID251"),
    ("from pickle import loads\n", "TID251"),
    ("import _pickle\n", "TID251"),
    ("import cPickle\n", "TID251"),
    ("import marshal\n", "TID251"),
    ("import shelve\n", "TID251"),
    ("import dill\n", "TID251"),
    ("import cloudpickle\n", "TID251"),
    ("import joblib\njoblib.load('f')\n", "TID251"),
    ("from joblib import load\n", "TID251"),
    ("import torch\ntorch.load('f')\n", "TID251"),
    ("import pandas as pd\npd.read_pickle('f')\n", "TID251"),
    ("import yaml\nyaml.load(b'', yaml.Loader)\n", "TID251"),
    ("from yaml import unsafe_load\n", "TID251"),
    ("import xml.etree.ElementTree as ET\n", "TID251"),
    ("from xml.dom import minidom\n", "TID251"),
    ("import tempfile\ntempfile.mktemp()\n", "TID251"),
    ("import os\nos.system('ls')\n", "TID251"),
    ("import urllib.request\n", "TID251"),
    ("eval('1')\n", "S307"),
    ("exec('1')\n", "S102"),
    ("import subprocess\nsubprocess.run('ls', shell=True)\n", "S602"),
]


@pytest.mark.parametrize(
    ("package", "snippet", "rule"),
    [("service", *banned) for banned in BANNED] + [(package, *BANNED[0]) for package in PACKAGES],
)
def test_the_ban_bites(package: str, snippet: str, rule: str) -> None:
    name = str(ROOT / package / "versions" / "snippet.py")
    found = subprocess.run(
        [RUFF, "check", "--output-format", "concise", "--stdin-filename", name, "-"],
        input=snippet,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert found.returncode == 1, found.stderr
    assert f" {rule} " in found.stdout


def unpickled(source: str) -> list[int]:
    """Return the lines on which numpy may unpickle; ruff has no such rule."""
    return [
        node.value.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.keyword)
        and node.arg == "allow_pickle"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]


def test_numpy_unpickles_nowhere() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert unpickled(path.read_text()) == [], path


@pytest.mark.parametrize("value", ["True", "1", "trusted"])
def test_that_is_seen(value: str) -> None:
    assert unpickled(f"import numpy as np\n\nnp.load(f, allow_pickle={value})\n") == [3]
    assert unpickled("np.load(f, allow_pickle=False)") == []
