"""``howsure operating-point`` previews, activates, shows and withdraws what the service decides."""

import re
import shlex

import numpy as np
import pytest
from howsure_command import howsure_here
from running_service import DIGITS

from howsure.client import Client

QUICK = {"measures": ["entropy"], "bins": 5, "folds": 2}
SIGNED = ("--author", "A. Reviewer", "--reason", "agreed with the clinic")
NONE = "no operating point is active: `abstain` follows the risk targets in the configuration."


@pytest.fixture
def point(service, command):
    """The words of the command about a version of its own."""
    sets = [DIGITS / f"{part}.npz" for part in ("calibration", "evaluation")]
    with Client(str(service.base_url)) as client:
        made = client.calibrate(
            DIGITS / "model.onnx", sets[0], evaluation=sets[1], name="decided", **QUICK
        )
        yield "operating-point", made.reference
        client.delete(made)


def preview_of(service, point, **choice) -> dict:
    address = f"/calibrations/{point[1]}/operating-points/preview"
    return service.get(address, params=choice).json()


def test_a_preview_prints_the_effect_and_how_to_activate_it(service, command, point) -> None:
    shown = command(*point, "--max-risk", "0.1", "--delta", "0.1", "--volume", "10000").stdout
    seen = preview_of(service, point, max_risk=0.1, delta=0.1, volume=10_000)
    of, judged = seen["consequences"], seen["consequences"]["evaluation"]
    lines = shown.splitlines()
    threshold = lines[0].removeprefix(
        f"{point[1]}: accepts answers with an uncertainty (entropy) of up to "
    )
    assert np.float32(threshold) == np.float32(seen["threshold"])
    assert lines[1] == (
        "Certified: at most 10 % of accepted answers are wrong, with 90 % confidence, on data like "
        "the calibration set."
    )
    for name, found in (("calibration set", of), ("evaluation set", judged)):
        (row,) = [line for line in lines if line.strip().startswith(name)]
        assert row.split()[2] == str(found["n_samples"])
        assert f"{found['n_accepted']} ({100 * found['coverage']:.1f} %)" in row
        assert f"{found['n_errors']} ({100 * found['risk']:.1f} %)" in row
        lower, upper = (f"{100 * end:.1f} %" for end in found["risk_interval"])
        assert f"{lower} to {upper}" in row
    worst = of["by_class"][0]
    (row,) = [line for line in lines if line.split()[:1] == [str(worst["index"])]]
    for kind in ("named", "labelled"):
        share = worst[kind]
        assert f"{share['n_samples']} " in row
        assert f" {100 * share['share']:.1f} %" in row
    expected = seen["expected"]
    assert f"Of 10,000 answers: {expected['accepted']:,.0f} accepted, about" in shown
    assert f"{expected['reviewed']:,.0f} to review, by the evaluation set." in shown
    assert service.get(f"/calibrations/{point[1]}/operating-points").json() == {
        "operating_points": []
    }

    words = lines[-1].removeprefix("Nothing was stored. To activate it: ")
    typed = shlex.split(words.replace("NAME", "Ada").replace("TEXT", "'a pilot'"))
    assert typed[:3] == ["howsure", *point]
    command(*typed[1:])
    history = service.get(f"/calibrations/{point[1]}/operating-points").json()["operating_points"]
    assert [(found["author"], found["chosen_by"]) for found in history] == [
        ("Ada", {"max_risk": 0.1, "delta": 0.1})
    ]


def test_a_choice_that_is_not_tested_names_the_rate_that_is(service, command, point) -> None:
    for name, value in (("coverage", 0.8), ("threshold", 0.3)):
        shown = command(*point, f"--{name}", value).stdout
        assert "Not tested: the error rates are observed." in shown
        (rate,) = re.findall(r"--max-risk (\S+) accepts as many answers\.", shown)
        wanted = preview_of(service, point, **{name: value})["consequences"]["n_accepted"]
        assert preview_of(service, point, max_risk=rate)["consequences"]["n_accepted"] >= wanted
    shown = command(*point, "--max-risk", "0.00001").stdout
    assert "no threshold passes the test for an error rate of at most 0.001 %." in shown
    assert "Add about " in shown
    assert "To activate" not in shown


def test_decisions_are_made_shown_and_withdrawn(command, point) -> None:
    assert command(*point).stdout.splitlines() == [f"{point[1]}: {NONE}"]
    made = command(*point, "--max-risk", "0.1", "--activate", *SIGNED).stdout
    assert made.startswith(f"{point[1]}: automatic is active: answers with an uncertainty of up to")
    assert "calibration set" in made
    command(*point, "--threshold", "0.25", "--activate", *SIGNED, "--name", "pilot")
    shown = command(*point).stdout
    assert shown.startswith(f"{point[1]}: pilot is active: answers with an uncertainty of up to 0.")
    rows = [line for line in shown.splitlines() if "agreed with the clinic" in line]
    assert [row.split()[0] for row in rows] == ["2", "1"]
    assert "pilot: up to 0.25" in rows[0]
    assert "error rate 10 %, 95 % confidence" in rows[1]

    gone = command(*point, "--withdraw", "--author", "Ada", "--reason", "[bold] camera").stdout
    assert gone.startswith(f"{point[1]}: withdrawn, as decision 3. No operating point is active")
    shown = command(*point).stdout
    assert shown.startswith(f"{point[1]}: {NONE}")
    assert "[bold] camera" in shown


def test_tables_are_whole_on_a_terminal_of_80_columns(command, point) -> None:
    author, reason = "A. Reviewer of the second department", "agreed with the clinic " * 20
    name = "a-name-of-many-letters_" + 40 * "x"
    signed = ("--author", author, "--reason", reason, "--name", name)
    command(*point, "--max-risk", "0.1", "--activate", *signed)
    shown = command(*point, TTY_COMPATIBLE="1", COLUMNS="80").stdout
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert "not shown" not in shown
    assert "…" not in shown
    assert max(map(len, lines[1:])) <= 80
    cells = [line[-17:] for line in lines]
    assert " ".join(cells).split().count("clinic") == 20


def test_a_calibration_that_should_not_be_used_is_warned_of(service, command) -> None:
    labels = np.arange(40) % 4
    logits = np.eye(4)[labels] * 3 + np.random.default_rng(0).random((40, 4))
    with Client(str(service.base_url)) as client:
        client.calibrate(logits=logits, labels=labels, name="doubted", **QUICK | {"bins": 8})
    words = ("operating-point", "doubted", "--coverage", "0.5")
    said = [command(*words).stderr, command(*words, "--activate", *SIGNED).stderr]
    said.append(command("operating-point", "doubted").stderr)
    assert said[0].startswith("warning: ")
    assert len(set(said)) == 1


def test_an_imported_calibration_takes_a_threshold_of_unknown_effect(command, tmp_path) -> None:
    command("bins", "digits", "-o", tmp_path / "bins.json")
    command("import", tmp_path / "bins.json", "--name", "imported")
    shown = command("operating-point", "imported", "--threshold", "0.25").stdout
    assert "(entropy) of up to 0.25\nIts effect is unknown: this calibration was imported" in shown
    made = command("operating-point", "imported", "--threshold", "0.25", "--activate", *SIGNED)
    assert made.stdout.startswith("imported@1: automatic is active")
    refused = command("operating-point", "imported", "--coverage", "0.5", status=1)
    assert "keeps no records of samples" in refused.stderr


def test_the_help_has_examples() -> None:
    shown = howsure_here("operating-point", "--help").stdout
    assert shown.count("\n howsure operating-point digits") == 4
