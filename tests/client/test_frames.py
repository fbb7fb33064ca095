"""Data frames go in as they are and come out of predictions; notebooks show tables."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from running_service import DIGITS

from howsure.client import Client, HowsureError

QUICK = {"measures": ["entropy"], "bins": 5, "folds": 2}
MODEL = DIGITS / "model.onnx"
COLUMNS = [f"pixel{k}" for k in range(64)]


def frame_of(part: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return inputs and labels with an index that does not count from 0."""
    with np.load(DIGITS / f"{part}.npz") as archive:
        inputs = pd.DataFrame(archive["inputs"], columns=COLUMNS).sample(frac=1, random_state=1)
        return inputs, pd.Series(archive["labels"]).loc[inputs.index]


@pytest.fixture(scope="module")
def client(url):
    with Client(url) as client:
        yield client


@pytest.fixture(scope="module")
def framed(client):
    return client.calibrate(MODEL, frame_of("calibration"), name="framed", **QUICK)


def test_frames_give_what_arrays_do(client, framed) -> None:
    inputs, labels = frame_of("calibration")
    arrays = client.calibrate(MODEL, (inputs.to_numpy(), labels.to_numpy()), name="arrays", **QUICK)
    together = client.calibrate(MODEL, inputs.assign(label=labels), name="together", **QUICK)
    fortran = (np.asfortranarray(inputs), np.asarray(labels))
    ordered = client.calibrate(MODEL, fortran, name="fortran", **QUICK)
    assert framed.accuracy == arrays.accuracy == together.accuracy == ordered.accuracy
    expected = client.predict(arrays, inputs.to_numpy())
    for rows in (inputs, np.asfortranarray(inputs)):
        found = client.predict(arrays, rows)
        assert np.array_equal(found.class_, expected.class_)
        assert found.top1.probability == pytest.approx(expected.top1.probability)


def test_the_service_sees_the_columns_of_a_frame(client, framed) -> None:
    assert any("64" in note and "pixel0" in note for note in framed.warnings)
    evaluated = client.evaluate(framed, frame_of("evaluation"), name="later")
    assert evaluated.labelled


def test_a_frame_of_mixed_types(client) -> None:
    inputs, labels = frame_of("calibration")
    mixed = inputs.assign(pixel0=inputs["pixel0"].astype(int), pixel1=inputs["pixel1"] > 0)
    made = client.calibrate(MODEL, (mixed, labels), name="mixed", **QUICK)
    assert len(client.predict(made, mixed[:7])) == 7


def test_many_rows_of_a_frame(client, framed) -> None:
    inputs, _ = frame_of("evaluation")
    whole = client.predict(framed, inputs)
    parts = client.predict(framed, inputs, rows_per_request=250)
    assert np.array_equal(whole.class_, parts.class_)


def test_tables_of_arrow_are_read_by_name(client, framed) -> None:
    inputs, labels = frame_of("calibration")
    table = pa.Table.from_pandas(inputs, preserve_index=False)
    labelled = table.append_column("label", pa.array(labels.to_numpy()))
    for samples in ((table, pa.chunked_array([labels.to_numpy()])), labelled):
        made = client.calibrate(MODEL, samples, name="arrow", **QUICK)
        assert made.accuracy == framed.accuracy
    found = client.predict(made, table.select(COLUMNS[::-1]))
    assert not found.by_position
    assert np.array_equal(found.class_, client.predict(framed, inputs).class_)
    scores = pa.table({"correct": [k % 3 > 0 for k in range(90)], "score": [*range(90)]})
    judge = client.calibrate(scores=scores, name="arrow-judge", bins=3)
    assert len(client.predict(judge, scores=scores)) == 90


def test_a_frame_with_a_label_and_labels(client) -> None:
    inputs, labels = frame_of("calibration")
    with pytest.raises(ValueError, match="column 'label' already"):
        client.calibrate(MODEL, (inputs.assign(label=0), labels))


def test_predictions_as_a_frame(client, framed) -> None:
    answers = client.predict(framed, frame_of("evaluation")[0][:20])
    found = answers.to_pandas()
    assert list(found["label"]) == answers.label
    assert np.array_equal(found["top1_probability"], answers.top1.probability)
    assert np.array_equal(found["topk_class_2"], answers.topk_class[:, 1])
    assert len(found) == 20


def test_lists_of_calibrations_as_a_frame(client, framed) -> None:
    found = client.calibrations(name="framed").to_pandas()
    assert list(found["reference"]) == ["framed@1"]
    assert found["top1_accuracy"][0] == framed.accuracy[1]


def test_notebooks_and_consoles(client, framed) -> None:
    samples = {"logits": np.eye(4)[np.arange(40) % 4], "labels": (np.arange(40) + 1) % 4}
    options = {"name": "shown", "classes": ["<b>", "cat", "dog", "[x]"], "bins": 4}
    shown = client.calibrate(calibration=samples, **options)
    said = repr(shown)
    assert said.startswith("Calibration(shown@1, succeeded, Top-1 0.000")
    assert "warning: labels-shifted" in said
    assert "notes" in said
    assert len(said) < 300
    page = shown._repr_html_()
    assert "warning (labels-shifted)" in page
    assert "<pre>labels = (labels - 1) % 4</pre>" in page
    assert "note: Top-" in page
    answers = client.predict(shown, logits=np.eye(4))
    assert repr(answers).startswith("Predictions(shown@1, 4 rows, class")
    page = answers._repr_html_()
    assert "<td>&lt;b&gt;</td>" in page
    assert "<b>" not in page
    probability = answers.top1.probability[0]
    assert f"{probability:.3f} (" in page
    assert client.predict(framed, frame_of("evaluation")[0])._repr_html_().count("<tr>") == 11
    assert "shown@1" in client.calibrations()._repr_html_()


def test_outputs_in_a_frame_are_found_by_the_names_of_classes(client) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.dirichlet([0.3] * 3, 300), columns=["billing", "sales", "other"])
    drawn = (frame.to_numpy().cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    labels = pd.Series(frame.columns[drawn])
    told = client.dry_run(probabilities=frame, labels=labels, **QUICK)
    assert told["data"]["kind"] == "probabilities"
    made = client.calibrate(probabilities=frame, labels=labels, name="teams", **QUICK)
    assert made.classes == ("billing", "sales", "other")
    expected = client.predict(made, probabilities=frame.to_numpy())
    for columns in (frame.columns, frame.columns[::-1]):
        found = client.predict(made, probabilities=frame[columns])
        assert np.array_equal(found.class_, expected.class_)
    short = client.predict(made, probabilities=frame.add_prefix("p_"))
    assert np.array_equal(short.class_, expected.class_)
    with pytest.raises(HowsureError, match="prob_sales"):
        client.predict(made, probabilities=frame.drop(columns="sales"))


def test_answers_stand_beside_their_rows_in_a_frame(client, framed) -> None:
    """After a sort, a split or a filter the index does not count from 0."""
    inputs, _ = frame_of("evaluation")
    some = inputs[inputs["pixel2"] > 2]
    found = client.predict(framed, some, rows_per_request=100)
    joined = some.join(found.to_pandas())
    assert joined["class"].tolist() == found.class_.tolist()
    assert found.to_pandas().index.equals(some.index)
    assert client.predict(framed, some.to_numpy()).to_pandas().index.tolist() == [*range(len(some))]


def test_ids_beside_outputs_in_a_frame_are_not_read(client) -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(size=400)
    frame = pd.DataFrame(
        {"loan_id": np.arange(400), "prob": p, "branch": rng.integers(9, size=400)}
    )
    labels = (rng.random(400) < p).astype(int)
    made = client.calibrate(probabilities=frame, labels=labels, name="loans", bins=5)
    again = client.predict(made, probabilities=frame)
    assert again.top1.probability == pytest.approx(
        client.predict(made, probabilities=p).top1.probability
    )
    named = pd.DataFrame({"id": np.arange(400), "no": 1 - p, "yes": p, "why": "text"})
    found = client.calibrate(probabilities=named, labels=labels, name="named-loans", bins=5)
    assert client.predict(found, probabilities=named).label[:1] == [["no", "yes"][int(p[0] > 0.5)]]


def test_findings_of_a_further_set_have_remedies(client, framed) -> None:
    inputs, labels = frame_of("evaluation")
    (found,) = client.evaluate(framed, (inputs * 255, labels), name="not scaled").findings
    assert (found.code, found.level) == ("inputs-out-of-range", "warning")
    assert found.remedy.text == "Prepare the set as the calibration set."
    assert client.evaluate(framed, (inputs, labels), name="same again").findings == ()
