"""Data frames go in as they are and come out of predictions; notebooks show tables."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from running_service import DIGITS, QUICK

MODEL = DIGITS / "model.onnx"
COLUMNS = [f"pixel{k}" for k in range(64)]


def frame_of(part: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return inputs and labels with an index that does not count from 0."""
    with np.load(DIGITS / f"{part}.npz") as archive:
        inputs = pd.DataFrame(archive["inputs"], columns=COLUMNS).sample(frac=1, random_state=1)
        return inputs, pd.Series(archive["labels"]).loc[inputs.index]


@pytest.fixture(scope="module")
def framed(client):
    return client.calibrate(MODEL, frame_of("calibration"), name="framed", **QUICK)


def test_frames_give_what_arrays_do(client, framed) -> None:
    inputs, labels = frame_of("calibration")
    by_arrays = client.dry_run(MODEL, (inputs.to_numpy(), labels.to_numpy()))["accuracy"]
    table = pa.Table.from_pandas(inputs, preserve_index=False)
    labelled = table.append_column("label", pa.array(labels.to_numpy()))
    for samples in (
        (inputs, labels),
        inputs.assign(label=labels),
        (np.asfortranarray(inputs), np.asarray(labels)),
        (table, pa.chunked_array([labels.to_numpy()])),
        labelled,
    ):
        assert client.dry_run(MODEL, samples)["accuracy"] == by_arrays
    expected = client.predict(framed, inputs.to_numpy())
    for rows in (inputs, np.asfortranarray(inputs), table.select(COLUMNS[::-1])):
        predictions = client.predict(framed, rows)
        assert np.array_equal(predictions.class_, expected.class_)
        assert predictions.top1.probability == pytest.approx(expected.top1.probability)
    assert not predictions.by_position
    assert any("64" in note and "pixel0" in note for note in framed.warnings)
    with pytest.raises(ValueError, match="'label'"):
        client.dry_run(MODEL, (inputs.assign(label=0), labels))


def test_predictions_and_lists_become_frames(client, framed) -> None:
    """After a sort, a split or a filter the index of rows does not count from 0."""
    inputs, _ = frame_of("evaluation")
    some = inputs[inputs["pixel2"] > 2]
    predictions = client.predict(framed, some, rows_per_request=100)
    frame = predictions.to_pandas()
    assert list(frame["label"]) == predictions.label
    assert np.array_equal(frame["top1_probability"], predictions.top1.probability)
    assert np.array_equal(frame["topk_class_2"], predictions.topk_class[:, 1])
    assert frame.index.equals(some.index)
    whole = client.predict(framed, some.to_numpy())
    assert np.array_equal(whole.class_, predictions.class_)
    assert whole.to_pandas().index.tolist() == [*range(len(some))]
    listed = client.calibrations(name="framed").to_pandas()
    assert list(listed["reference"]) == ["framed@1"]
    assert listed["top1_accuracy"][0] == framed.accuracy[1]


def test_notebooks_and_consoles(client, framed) -> None:
    samples = {"logits": np.eye(4)[np.arange(40) % 4], "labels": (np.arange(40) + 1) % 4}
    options = {"name": "shown", "classes": ["<b>", "cat", "dog", "[x]"], **QUICK}
    made = client.calibrate(calibration=samples, **options)
    finding = next(finding for finding in made.findings if finding.code == "labels-shifted")
    assert (finding.level, finding.figures["offset"]) == ("warning", -1)
    assert "-1" in finding.message
    text = repr(made)
    assert text.startswith("Calibration(shown@1, succeeded, Top-1 0.000")
    assert "warning: labels-shifted" in text
    assert len(text) < 300
    page = made._repr_html_()
    assert "warning (labels-shifted)" in page
    assert "<pre>labels = (labels - 1) % 4</pre>" in page
    predictions = client.predict(made, logits=np.eye(4))
    assert repr(predictions).startswith("Predictions(shown@1, 4 rows, class")
    page = predictions._repr_html_()
    assert "<td>&lt;b&gt;</td>" in page
    assert "<b>" not in page
    assert f"{predictions.top1.probability[0]:.3f} (" in page
    assert client.predict(framed, frame_of("evaluation")[0])._repr_html_().count("<tr>") == 11
    assert "shown@1" in client.calibrations()._repr_html_()


def test_ids_beside_outputs_in_a_frame_are_not_read(client) -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(size=400)
    columns = {"loan_id": np.arange(400), "prob": p, "branch": rng.integers(9, size=400)}
    frame = pd.DataFrame(columns)
    labels = (rng.random(400) < p).astype(int)
    made = client.calibrate(probabilities=frame, labels=labels, name="loans", **QUICK)
    again = client.predict(made, probabilities=frame)
    expected = client.predict(made, probabilities=p)
    assert again.top1.probability == pytest.approx(expected.top1.probability)
    named = pd.DataFrame({"id": np.arange(400), "no": 1 - p, "yes": p, "why": "text"})
    tried = client.dry_run(probabilities=named, labels=labels, **QUICK)
    assert tried["config"]["classes"] == ["no", "yes"]


def test_findings_of_a_further_set_have_remedies(client, framed) -> None:
    inputs, labels = frame_of("evaluation")
    judged = client.evaluate(framed, (inputs * 255, labels), name="not scaled")
    (finding,) = judged.findings
    assert (finding.code, finding.level) == ("inputs-out-of-range", "warning")
    assert (judged.labelled, bool(finding.remedy.text)) == (True, True)
