"""The statistics load numpy, scipy and the standard library, and no other package."""

import json
import pkgutil
import subprocess
import sys

import pytest

import howsure.statistics

ALL = [
    module.name
    for module in pkgutil.walk_packages(howsure.statistics.__path__, "howsure.statistics.")
]
# What a locked process needs, which cannot load anything later.
OF_THE_CHILD = [
    "howsure.statistics.arrays",
    "howsure.statistics.measures",
    "howsure.statistics.softmax",
    "howsure.statistics.records",
    "howsure.statistics.bins.edges",
    "howsure.statistics.bins.lookup",
    "howsure.statistics.measures.noise",
    "howsure.statistics.measures.passes",
]
PROGRAM = """
import importlib, json, sys, sysconfig
from pathlib import Path
names, installed = json.load(sys.stdin), Path(sysconfig.get_path("purelib"))
before = set(sys.modules)
for name in names:
    importlib.import_module(name)
files = [getattr(sys.modules[name], "__file__", None) for name in set(sys.modules) - before]
paths = [Path(file) for file in files if file is not None]
found = {p.relative_to(installed).parts[0] for p in paths if p.is_relative_to(installed)}
print(json.dumps(sorted(found)))
"""


@pytest.mark.parametrize(
    ("modules", "allowed"),
    [(ALL, {"numpy", "scipy"}), (OF_THE_CHILD, {"numpy"})],
    ids=["all", "child"],
)
def test_nothing_else_is_loaded(modules, allowed):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(modules),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(done.stdout)) == allowed
