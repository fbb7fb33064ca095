"""Write the tables of docs/papers.md: `howsure study` on the examples.

    make papers
    python docs/make_papers.py [--page FILE]

The tables stand between markers that name their study. The digits get a Dropout node, and six ways
to drift; the models of Ding et al., Table 1, are their outputs with other labels.
"""

# ruff: noqa: INP001, T201 -- a stand-alone script that prints its studies

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from runpy import run_path

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "papers.md"
DIGITS = ROOT / "examples" / "digits"
SHIFT = ROOT / "examples" / "shift" / "make_shift.py"
BY_MEASURE = ("finlay-table-1", "finlay-table-2", "finlay-table-3", "oberman-table-2")
BY_MEASURE += ("oberman-table-3", "confidence-table-1")
PASSES = '{"dropout": {"passes": 100}}'  # with fewer, a rate of 0.002 drops none of 32 units
TURNED = (0, 6, 12, 24)  # right answers that are made wrong, of 568
N_CLASSES = 10
RATE = 0.1
# Runs `howsure` with these words, and returns what it prints.
Run = Callable[[Sequence[str]], str]


def with_dropout(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model of the digits with a Dropout node before its last layer."""
    graph = model.graph
    constants = {"rate": np.float32(RATE), "training": np.bool_(True)}
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()
    )
    last = graph.node[-1]
    dropout = helper.make_node("Dropout", [last.input[0], *constants], ["dropped"])
    last.input[0] = "dropped"
    graph.node.insert(len(graph.node) - 1, dropout)
    onnx.checker.check_model(model, full_check=True)
    return model


def write_turned(folder: Path) -> list[str]:
    """Write the outputs with the labels of the least confident right answers made wrong."""
    header, *lines = (DIGITS / "calibration_logits.csv").read_text(encoding="utf-8").splitlines()
    table = np.array([line.split(",") for line in lines], dtype=np.float64)
    labels, logits = table[:, 0].astype(int), table[:, 1:]
    confidence = -np.log(np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1))
    right = np.flatnonzero(logits.argmax(axis=1) == labels)
    least = right[np.argsort(confidence[right])]
    files = []
    for number in TURNED:
        changed = labels.copy()
        changed[least[:number]] = (labels[least[:number]] + 1) % N_CLASSES
        rows = [
            f"{label},{line.partition(',')[2]}" for label, line in zip(changed, lines, strict=True)
        ]
        file = folder / f"turned-{number}.csv"
        file.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
        files.append(str(file))
    return files


def study_tables(run: Run, folder: Path) -> dict[str, str]:
    """Return the table of each study as Markdown, without its title."""
    model = folder / "dropout.onnx"
    onnx.save(with_dropout(onnx.load(DIGITS / "model.onnx")), model)
    calibration, evaluation = (
        str(DIGITS / f"{name}.npz") for name in ("calibration", "evaluation")
    )
    words = {
        name: [str(model), calibration, "--evaluation", evaluation, "--config", PASSES]
        for name in BY_MEASURE
    }
    words["ding-table-1"] = write_turned(folder)
    words["ovadia-appendix-g"] = ["digits"]
    manifest = run_path(str(SHIFT))["write_sets"](folder / "shifts")
    run(["calibrate", str(DIGITS / "model.onnx"), calibration, "--name", "digits"])
    run(["evaluate", "digits", str(manifest.parent), "--manifest", str(manifest)])
    tables = {}
    for name, files in words.items():
        printed = run(["study", *files, "--like", name, "--format", "markdown"])
        tables[name] = printed.partition("\n\n")[2].strip()
    return tables


def with_tables(page: str, tables: dict[str, str]) -> str:
    """Return the page with these tables between its markers."""
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(page)) != 1:
            raise SystemExit(f"{begin} and {end} must stand in the page once")
        page = pattern.sub(lambda _, text=f"{begin}\n{table}\n{end}": text, page)
    return page


def main() -> None:
    """Make the tables and write them into the page."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/papers.md.")
    parser.add_argument("--page", type=Path, default=PAGE)
    page = parser.parse_args().page
    with tempfile.TemporaryDirectory() as folder:
        settings = {"HOWSURE_DATA_DIR": f"{folder}/data", "HOWSURE_DEVICE": "cpu"}

        def run(words: Sequence[str]) -> str:
            print("howsure", *words)
            command = [sys.executable, "-m", "service", *words]
            environment = os.environ | settings
            return subprocess.run(  # noqa: S603 - the command of this project
                command, check=True, env=environment, stdout=subprocess.PIPE, text=True
            ).stdout

        tables = study_tables(run, Path(folder))
    text = page.read_text(encoding="utf-8")
    page.write_text(with_tables(text, tables), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
