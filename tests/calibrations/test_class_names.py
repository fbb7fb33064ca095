"""Labels that are names have the indices that the model gives these names, or are refused."""

import json
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from classifier_files import skl2onnx_model
from remedy_lines import followed
from running_service import QUICK, calibrate, calibrated, evaluate, npz
from sklearn.linear_model import LogisticRegression

from howsure.remedies import remedy_of
from service.calibrations.class_indices import check_class_names
from service.calibrations.config import CalibrationConfig
from service.calibrations.set_checks import check_class_map, check_same_classes, class_names
from service.errors import InvalidConfig, InvalidDataset
from service.runner.messages.dataset import DatasetInfo

ROWS = np.random.default_rng(3).normal(size=(300, 3)).astype(np.float32)
CLASS = ROWS.argmax(axis=1)
# In no alphabetical order, so that the order of names is never right by chance.
NAMES = ["silver", "gold", "bronze"]


def labelled(names: Any) -> np.ndarray:
    return np.asarray(names)[CLASS]


def model_of(names: Any) -> bytes:
    estimator = LogisticRegression().fit(ROWS, labelled(names))
    found: bytes = skl2onnx_model(estimator, ROWS, labelled(names)).SerializeToString()
    return found


def csv(labels: Any, *, rows: np.ndarray = ROWS) -> bytes:
    table = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(label=labels)
    return table.to_csv(index=False).encode()


def arrays(labels: Any) -> bytes:
    return npz(inputs=ROWS, labels=labels)


def refused(client: httpx.Client, **parts: Any) -> str:
    config = json.dumps({"name": "names", **QUICK, **parts.pop("config", {})})
    answer = calibrate(client, config=config, **parts)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    detail: str = answer.json()["detail"]
    return detail


def served(client: httpx.Client, reference: str) -> list[str]:
    answer = client.post("/predict", json={"calibration": reference, "inputs": ROWS.tolist()})
    return [row["label"] for row in answer.json()["predictions"]]


@pytest.mark.parametrize("own", [NAMES, ["0", "1", "2"]], ids=["names", "indices"])
@pytest.mark.parametrize("classes", [["Silver", "gold", "bronze"], ["Silver", "Gold", "Bronze"]])
def test_a_label_that_is_no_class_is_refused(client, own, classes) -> None:
    numbers = own == ["0", "1", "2"]
    model = model_of([0, 1, 2] if numbers else sorted(own))
    order = classes if numbers else sorted(classes, key=str.casefold)
    labels = labelled(NAMES if numbers else sorted(NAMES))
    config = {"classes": order}
    if not numbers and classes[1] == "Gold":
        found = calibrated(client, QUICK | config, model=model, calibration=csv(labels))
        assert found["config"]["classes"] == order  # other capitals for each of the model's names
        assert found["accuracy"]["1"] > 0.9
        return
    detail = refused(client, model=model, calibration=csv(labels), config=config)
    assert "expected the names of `classes`" in detail
    assert "did you mean" in detail


@pytest.mark.parametrize("classes", [["silver", "gold", "bronze"], ["Silver", "Gold", "Bronze"]])
def test_names_in_another_order_than_the_models_are_refused(client, classes) -> None:
    model, table = model_of(sorted(NAMES)), csv(labelled(sorted(NAMES)))
    detail = refused(client, model=model, calibration=table, config={"classes": classes})
    assert "config.classes[0]: expected the names in the model's own order, 'bronze'" in detail


def test_the_labels_of_another_model_are_refused(client) -> None:
    labels = labelled(["bronze", "gold", "sliver"])
    detail = refused(client, model=model_of(sorted(NAMES)), calibration=csv(labels))
    assert "got 'sliver'" in detail
    assert "did you mean 'silver'?" in detail


def test_a_missing_class_is_no_matter_where_the_model_names_it(client) -> None:
    has = CLASS > 0
    table = csv(labelled(sorted(NAMES))[has], rows=ROWS[has])
    found = calibrated(client, QUICK, model=model_of(sorted(NAMES)), calibration=table)
    assert found["data"]["class_counts"] == [0, *np.bincount(CLASS)[1:].tolist()]
    assert found["accuracy"]["1"] > 0.9


@pytest.mark.parametrize("own", [[-1, 1, 2], [1, 2, 3], [0, 2, 4]], ids=str)
@pytest.mark.parametrize("written", [csv, arrays], ids=["csv", "npz"])
def test_integers_that_the_model_has_as_names_are_names(client, own, written) -> None:
    name = f"integers-{own[0]}-{own[2]}-{written.__name__}".replace("--", "-m")
    labels = labelled(own)
    found = calibrated(
        client, QUICK | {"name": name}, model=model_of(own), calibration=written(labels)
    )
    assert found["accuracy"]["1"] > 0.9
    assert found["data"]["class_counts"] == np.bincount(CLASS).tolist()
    assert any("model's own names" in note for note in found["warnings"])
    assert np.mean(np.array(served(client, name)) == labels.astype(str)) > 0.9
    further = evaluate(client, found["id"], "later", written(labels))
    assert further.status_code == httpx.codes.CREATED, further.text
    assert further.json()["result"]["events"]["1"]["accuracy"] == pytest.approx(
        found["accuracy"]["1"]
    )


def test_a_note_tells_which_order_the_names_have(client) -> None:
    """It is the model's own, or that of the names if nobody else knows them."""
    table = csv(labelled(sorted(NAMES)))
    by_order = "Classes were numbered in the order of their names"
    for own, note in ((sorted(NAMES), "Labels are read as the model's own"), ([0, 1, 2], by_order)):
        found = calibrated(client, QUICK, model=model_of(own), calibration=table)
        told = [said for said in found["warnings"] if said.startswith(("Labels are", by_order))]
        assert len(told) == 1
        assert told[0].startswith(note)
        assert "bronze=0, gold=1, silver=2" in told[0]


def test_indices_stay_indices_where_the_model_has_other_integers(client) -> None:
    found = calibrated(client, QUICK, model=model_of([1, 2, 3]), calibration=csv(CLASS))
    assert found["accuracy"]["1"] > 0.9


@pytest.mark.parametrize("written", [csv, arrays], ids=["csv", "npz"])
def test_integers_that_nobody_knows_name_class_map(client, written) -> None:
    model = model_of([0, 1, 2])
    detail = refused(client, model=model, calibration=written(CLASS - 1))
    assert "class_map" in detail
    assert "leave out samples without a label" in detail
    assert "class_map" in refused(client, model=model, calibration=written(CLASS + 1))
    class_map = {"-1": 0, "0": 1, "1": 2}
    found = calibrated(
        client, QUICK | {"class_map": class_map}, model=model, calibration=written(CLASS - 1)
    )
    assert found["accuracy"]["1"] > 0.9


def test_an_evaluation_set_has_the_classes_of_the_calibration(client) -> None:
    config = QUICK | {"name": "further", "classes": NAMES}
    found = calibrated(client, config, model=model_of([0, 1, 2]), calibration=csv(CLASS))
    capitals = csv(labelled([name.title() for name in NAMES]))
    answer = evaluate(client, found["id"], "capitals", capitals)
    assert answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY, answer.text
    assert "did you mean" in answer.json()["detail"]


NO_CONFIG = CalibrationConfig()


def info(class_map: dict[str, int] | None) -> DatasetInfo:
    return DatasetInfo("inputs", "zip", {}, 1, None, (), labelled=True, class_map=class_map)


def test_an_index_beyond_the_model_is_named() -> None:
    config = CalibrationConfig(class_map={"cat": 0, "dog": 3})
    with pytest.raises(InvalidConfig, match="from 0 to 2, got 3") as caught:
        check_class_map(info({"cat": 0}), config, 3)
    assert caught.value.violations[0].location == "config.class_map.dog"


@pytest.mark.parametrize("theirs", [{"dog": 0, "cat": 1}, {"cat": 0, "bird": 1}])
def test_a_name_is_one_class_in_both_sets(theirs: dict[str, int]) -> None:
    with pytest.raises(InvalidDataset, match="class_map"):
        check_same_classes(info({"cat": 0, "dog": 1}), info(theirs))


def test_an_evaluation_set_may_lack_classes_or_names() -> None:
    check_same_classes(info({"cat": 0, "dog": 1}), info({"dog": 1}))
    check_same_classes(info({"cat": 0, "dog": 1}), info(None))
    check_same_classes(info(None), info({"dog": 1}))


def test_names_of_all_classes_are_theirs() -> None:
    assert class_names(info({"dog": 1, "cat": 0}), 2) == ["cat", "dog"]
    assert class_names(info({"cat": 0}), 2) is None
    assert class_names(info({"cat": 0, "tabby": 0, "dog": 1}), 2) is None
    assert class_names(info(None), 2) is None


def test_names_that_differ_in_capitals_alone_keep_their_classes() -> None:
    check_class_names(CalibrationConfig(classes=["a", "A"]), ["a", "A"])
    with pytest.raises(InvalidConfig, match="own order, 'a', 'A', got 'A'"):
        check_class_names(CalibrationConfig(classes=["A", "a"]), ["a", "A"])


def test_labels_of_other_sets_are_doubted_unless_they_are_the_models_own_names(client) -> None:
    """The calibration set has these names; what another set's numbers mean is another question."""
    model, own, other = model_of(sorted(NAMES)), labelled(sorted(NAMES)), labelled([2, 0, 1])

    def doubted(found) -> list[str]:
        return [one["code"] for one in found["findings"] if one["code"].startswith("labels-")]

    made = calibrated(client, QUICK | {"name": "doubts"}, model=model, calibration=csv(own))
    assert doubted(made) == []
    for name, labels, codes in (("numbers", other, ["labels-shifted"]), ("names", own, [])):
        result = evaluate(client, "doubts", name, csv(labels)).json()["result"]
        assert doubted(result) == codes
        parts = {"calibration": csv(own), "evaluation": csv(labels)}
        both = calibrated(client, QUICK, model=model, **parts)
        assert doubted(both) == codes
        told = [one for one in both["findings"] if one["level"] == "warning"]
        told = [one for one in told if one["code"] != "samples-in-both-sets"]
        assert [one["code"] for one in told] == codes  # no accuracy that differs besides
        for one in told:
            assert one["message"].startswith("Evaluation set: Top-1 accuracy is ")
            text, code = remedy_of(one, both)
            assert "labels of the set that are names, or change those that are numbers" in text
            assert np.array_equal(followed(code, labels=other)["labels"], CLASS)
