"""Tables of probabilities by class name, or of one probability: from the upload to answers."""

import io
import json
from collections.abc import Mapping
from typing import Any

import httpx
import numpy as np
import pytest
from runner_models import linear, rows, weights
from running_service import calibrate, calibrated, evaluate, npz, send

RNG = np.random.default_rng(5)
NAMES = ["sales", "billing", "other"]
OUTPUTS = RNG.dirichlet(np.ones(3), 300)
LABELS = np.array([RNG.choice(3, p=row) for row in OUTPUTS])
CHANCE = RNG.random(300)
FRAUD = (RNG.random(300) < CHANCE).astype(int)
CONFIG: dict[str, Any] = {"bins": 3, "folds": 2, "measures": ["margin"], "selective": []}
CSV = {"Content-Type": "text/csv"}


def csv(columns: Mapping[str, Any]) -> bytes:
    rows_of = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows_of)]).encode()


def by_class(few: slice = slice(None), **labels: Any) -> dict[str, Any]:
    return {f"prob_{name}": OUTPUTS[few, at] for at, name in enumerate(NAMES)} | labels


def shuffled(columns: Mapping[str, Any]) -> dict[str, Any]:
    return dict(reversed(columns.items()))


@pytest.fixture(scope="module")
def intents(client: httpx.Client) -> dict[str, Any]:
    labels = np.array(NAMES)[LABELS]
    sets = {
        "calibration": csv(by_class(label=labels)),
        "evaluation": csv(shuffled(by_class(label=labels))),
    }
    return calibrated(client, CONFIG | {"name": "intents"}, **sets)


def answers(client: httpx.Client, name: str, columns: Mapping[str, Any]) -> list[Any]:
    answer = send(client, name, csv(columns), CSV)
    assert answer.status_code == httpx.codes.OK, answer.text
    return answer.json()["predictions"]


def test_columns_name_the_classes(client, intents) -> None:
    assert intents["config"]["classes"] == NAMES
    assert intents["accuracy"]["1"] == (OUTPUTS.argmax(axis=1) == LABELS).mean()
    by_index = csv({f"prob_{k}": OUTPUTS[:, k] for k in range(3)} | {"label": LABELS})
    numbered = calibrated(client, CONFIG | {"name": "numbered"}, calibration=by_index)
    assert numbered["accuracy"] == intents["accuracy"]


def test_later_tables_are_read_by_the_names_of_classes(client, intents) -> None:
    few = slice(0, 20)
    body = {"calibration": "intents", "probabilities": OUTPUTS[few].tolist()}
    expected = client.post("/predict", json=body).json()["predictions"]
    assert [row["label"] for row in expected] == [NAMES[k] for k in OUTPUTS[few].argmax(axis=1)]
    for columns in (by_class(few), shuffled(by_class(few, label=LABELS[few]))):
        assert answers(client, "intents", columns) == expected
    numbered = {f"prob_{k}": OUTPUTS[few, k] for k in range(3)}
    assert answers(client, "intents", numbered) == expected
    labelled = csv(shuffled(by_class(label=LABELS)))
    found = evaluate(client, "intents", "shuffled", labelled).json()
    assert found["result"]["events"]["1"]["accuracy"] == intents["accuracy"]["1"]


@pytest.mark.parametrize("route", ["predict", "evaluate"])
def test_other_classes_are_refused_by_name(client, intents, route) -> None:
    columns = by_class(slice(0, 20))
    columns["prob_bill"] = columns.pop("prob_billing")
    if route == "predict":
        answer = send(client, "intents", csv(columns), CSV)
    else:
        answer = evaluate(client, "intents", "other", csv(columns))
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    detail = answer.json()["detail"]
    assert "missing: `prob_billing`; got also `prob_bill`; did you mean `prob_billing`?" in detail


@pytest.mark.parametrize("name", ["p", "prob", "probability"])
def test_one_probability_is_that_of_class_1(client, name) -> None:
    config = CONFIG | {"name": "fraud", "classes": ["fine", "fraud"]}
    found = calibrated(client, config, calibration=csv({name: CHANCE, "label": FRAUD}))
    assert found["accuracy"]["1"] == ((CHANCE > 0.5) == FRAUD).mean()
    alone = client.post("/predict", json={"calibration": "fraud", "probabilities": [0.75, 0.125]})
    assert "send both classes of each row, [[1 - p, p], ...]" in alone.json()["detail"]
    body = {"calibration": "fraud", "probabilities": [[0.25, 0.75], [0.875, 0.125]]}
    expected = client.post("/predict", json=body).json()["predictions"]
    assert [row["label"] for row in expected] == ["fraud", "fine"]
    assert answers(client, "fraud", {name: [0.75, 0.125]}) == expected


def test_a_model_has_features_of_any_name(client) -> None:
    inputs = rows(300)
    names = ["p_value", "p", "prob", "probability", "p_1", "prob_x"]
    columns = dict(zip(names, inputs.T, strict=True))
    labels = (inputs @ weights()).argmax(axis=1)
    model = linear().SerializeToString()
    table = csv(columns | {"label": labels})
    config = CONFIG | {"name": "features"}
    found = calibrated(client, config, model=model, calibration=table)
    assert found["config"]["columns"] == {"inputs": names}
    classes = [row["class"] for row in answers(client, "features", shuffled(columns))]
    assert classes == labels.tolist()


def test_pairs_with_a_model_are_told(client) -> None:
    pairs = csv({"score": CHANCE, "correct": FRAUD})
    model = linear().SerializeToString()
    refused = calibrate(client, model=model, calibration=pairs, config=json.dumps(CONFIG))
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "`correct` are sent without a model" in refused.json()["detail"]


def test_unnamed_rows_are_marked_where_classes_have_names(client, intents) -> None:
    few = OUTPUTS[:5]
    kinds = {"logits": np.log(few), "probabilities": few}
    for kind, sent in kinds.items():
        body = {"calibration": "intents", kind: sent.tolist()}
        unnamed = client.post("/predict", json=body).json()
        assert unnamed["columns"] == "positional"
        body[kind] = [dict(reversed(list(zip(NAMES, row, strict=True)))) for row in sent.tolist()]
        named = client.post("/predict", json=body).json()
        assert "columns" not in named
        assert named["predictions"] == unnamed["predictions"]


def test_later_columns_by_index_are_marked(client, intents) -> None:
    numbered = {f"prob_{k}": OUTPUTS[:20, k] for k in range(3)}
    assert send(client, "intents", csv(numbered), CSV).json()["columns"] == "positional"
    by_name = send(client, "intents", csv(by_class(slice(0, 20))), CSV).json()
    assert "columns" not in by_name


def test_rows_by_other_classes_are_refused(client, intents) -> None:
    row = dict.fromkeys(NAMES, 1.0)
    row[NAMES[0].title()] = row.pop(NAMES[0])
    answer = client.post("/predict", json={"calibration": "intents", "logits": [row]})
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert f"missing: `{NAMES[0]}`; unknown: `{NAMES[0].title()}`" in answer.json()["detail"]


def test_rows_by_the_columns_of_the_table_are_told_the_class(client, intents) -> None:
    row = {f"prob_{name}": 1 / len(NAMES) for name in NAMES}
    answer = client.post("/predict", json={"calibration": "intents", "probabilities": [row]})
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert f"; write `{NAMES[0]}`, without `prob_`" in answer.json()["detail"]


def test_percentages_are_told_alike_in_json_and_csv(client, intents) -> None:
    advice = "the row sums to 100, so these are percentages: divide by 100"
    rows = 100 * OUTPUTS[:3]
    body = {"calibration": "intents", "probabilities": rows.tolist()}
    table = csv({f"prob_{name}": rows[:, k] for k, name in enumerate(NAMES)})
    for answer in (client.post("/predict", json=body), send(client, "intents", table, CSV)):
        assert advice in answer.json()["detail"]


def test_columns_called_as_classes_are_told_the_prefix(client) -> None:
    ids = {"ticket_id": np.arange(len(LABELS))}
    named = {name: OUTPUTS[:, k] for k, name in enumerate(NAMES)}
    table = csv({**ids, **named, "label": LABELS})
    answer = calibrate(client, calibration=table, config=json.dumps(CONFIG))
    assert f"(rename `{NAMES[-1]}` to `prob_{NAMES[-1]}`)" in answer.json()["detail"]


def test_the_one_score_of_a_binary_classifier_is_told_its_columns(client) -> None:
    """And what is advised is accepted."""
    z = OUTPUTS[:, 0] * 4 - 2
    binary = np.minimum(LABELS, 1)
    answer = calibrate(client, calibration=csv({"logit": z, "label": binary}), config="{}")
    assert "write `logit_0` = 0 and `logit_1` = z" in answer.json()["detail"]
    assert "rename `logit` to `prob` if it is" in answer.json()["detail"]
    for one_column in (npz(logits=z, labels=binary), npz(logits=z[:, None], labels=binary)):
        answer = calibrate(client, calibration=one_column, config="{}")
        assert "numpy.column_stack([0 * z, z])" in answer.json()["detail"]
    table = csv({"logit_0": 0 * z, "logit_1": z, "label": binary})
    calibrated(client, CONFIG | {"name": "one-logit"}, calibration=table)
    both = npz(logits=np.column_stack([0 * z, z]), labels=binary)
    calibrated(client, CONFIG | {"name": "one-logit"}, calibration=both)


def test_named_rows_of_a_calibration_without_a_model(client, intents) -> None:
    body = {"calibration": "intents", "inputs": [{"prob_sales": 1.0}]}
    answer = client.post("/predict", json=body)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "send its `logits` or `probabilities`" in answer.json()["detail"]


def test_whole_numbers_are_labels(client) -> None:
    table = csv({f"prob_{k}": OUTPUTS[:, k] for k in range(3)} | {"label": LABELS.astype(float)})
    assert b"2.0" in table
    found = calibrated(client, CONFIG | {"name": "whole"}, calibration=table)
    assert found["accuracy"]["1"] == (OUTPUTS.argmax(axis=1) == LABELS).mean()


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_an_array_without_a_name_is_what_the_calibration_set_held(client, kind) -> None:
    given = OUTPUTS if kind == "probabilities" else np.log(OUTPUTS)
    content = npz(**{kind: given, "labels": LABELS})
    calibrated(client, CONFIG | {"name": f"bare-{kind}"}, calibration=content)
    file = io.BytesIO()
    np.save(file, given[:4])
    answer = send(client, f"bare-{kind}", file.getvalue(), {"Content-Type": "application/x-npy"})
    body = {"calibration": f"bare-{kind}", kind: given[:4].tolist()}
    named = client.post("/predict", json=body).raise_for_status().json()
    assert answer.raise_for_status().json()["predictions"] == named["predictions"]


def test_pairs_with_other_names_are_told_theirs(client) -> None:
    pairs = csv({"judge_score": CHANCE, "hit": FRAUD})
    refused = calibrate(client, calibration=pairs, config=json.dumps({"name": "judge"}))
    assert refused.status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert "if these are pairs, rename `judge_score` to `score`" in refused.json()["detail"]
