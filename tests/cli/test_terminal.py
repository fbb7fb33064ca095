"""Tables and progress on terminals and in pipes: cells are whole, and names are no markup."""

import io
import json
import re

import numpy as np
from rich.console import Console

from howsure.client import Progress
from service.cli.console import pace
from service.cli.predict import predictions_table


def printed_predictions(*predictions: dict) -> list[str]:
    top1 = {"probability": 0.99, "interval": [0.9, 1.0], "measure": "margin", "bin": 1}
    console = Console(file=io.StringIO(), width=200)
    console.print(predictions_table([{"label": "cat", "top1": top1} | one for one in predictions]))
    return console.file.getvalue().splitlines()


def test_rows_that_should_not_be_relied_on_are_marked() -> None:
    _, header, _, doubtful, good, _ = printed_predictions(
        {"out_of_distribution": True, "abstain": {"0.05": True, "0.01": True}},
        {"out_of_distribution": False, "abstain": {"0.05": False, "0.01": False}},
    )
    assert "flags" in header
    assert "out of distribution, abstain (0.05, 0.01)" in doubtful
    assert not {"abstain", "out"} & {*good.split()}
    none = printed_predictions({"out_of_distribution": None, "abstain": {}}, {})
    assert "flags" not in "".join(none)


def test_the_pace_of_a_stage_is_printed_as_far_as_it_is_known() -> None:
    for rate, eta, text in (
        (None, None, ""),
        (1234.5, 8.4, "1,234/s, 8 s left"),
        (0.25, 600.0, "0.25/s, 10 min left"),
        (12.0, 9000.0, "12/s, 2.5 h left"),
        (0.0, None, "0/s"),
    ):
        progress = Progress("running", "fit", 1, 2, rows_per_second=rate, eta_seconds=eta)
        assert pace(progress) == text
    assert pace(Progress.of({"status": "running", "progress": {"stage": "fit"}})) == ""


LONG = "uncertainty_" + "of_the_second_stage_" * 2 + "x"


def on_terminal(command, columns: int, *words: str) -> str:
    """Return what a command prints on a terminal of this width, without styles."""
    text = command(*words, TTY_COMPATIBLE="1", COLUMNS=str(columns)).stdout
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_cells_are_whole_in_pipes_and_on_narrow_terminals(command, tmp_path, client) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 4)) * 3
    labels = np.where(rng.random(200) < 0.8, logits.argmax(axis=1), 0)
    measure = LONG.replace("uncertainty_", "supplied:", 1)
    np.savez(tmp_path / "long.npz", logits=logits, labels=labels, **{LONG: rng.random(200)})
    name = "a-calibration-with-a-long-name-of-" + 60 * "x"
    serve = json.dumps({"measures": [measure], "serve": {"1": measure}, "bins": 3, "top_k": [1]})
    command("calibrate", tmp_path / "long.npz", "--name", name, "--config", serve)
    lines = command("report", name).stdout.splitlines()
    (line,) = [line for line in lines if line.strip().startswith(measure)]
    event = client.get("/report", params={"calibration": name}).json()["events"]["1"]
    scores = event["measures"][measure]["scores"]
    means = [scores[score]["mean"] for score in ("ece_15", "brier", "nll", "auroc", "aurc")]
    assert line.split()[-5:] == [f"{mean:.4f}" for mean in means]

    shown = on_terminal(command, 60, "report", name)
    rows = [line for line in shown.splitlines() if len(re.findall(r"\b0\.\d{4}\b", line)) > 2]
    assert len(rows) > 5
    assert max(map(len, rows)) <= 60
    assert "…" not in shown
    listed = on_terminal(command, 60, "list", "--name", name)
    assert "not shown in a terminal this narrow: id" in listed
    assert listed.count("x") == 60

    point, words = ("operating-point", name), "agreed with the clinic " * 20
    signed = ("--author", "A. Reviewer of the second department", "--reason", words)
    command(*point, "--coverage", "0.5", "--activate", *signed)
    lines = on_terminal(command, 80, *point).splitlines()
    assert max(map(len, lines[1:])) <= 80
    assert " ".join(line[-17:] for line in lines).split().count("clinic") == 20
