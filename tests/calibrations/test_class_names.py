"""Labels that are names have the indices that the model gives these names, or are refused."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from classifier_files import skl2onnx_model
from refusals import assert_refused
from remedy_lines import followed
from running_service import calibrated, dry_run, evaluate, npz
from sklearn.linear_model import LogisticRegression

from howsure.remedies import remedy_of
from service.calibrations.config import CalibrationConfig
from service.calibrations.upload.class_indices import check_class_names
from service.calibrations.upload.set_checks import check_class_map, check_same_classes, class_names
from service.errors import InvalidConfig, InvalidDataset
from service.runner.messages.dataset import DatasetInfo

ROWS = np.random.default_rng(3).normal(size=(300, 3)).astype(np.float32)
CLASS = ROWS.argmax(axis=1)
# In no alphabetical order, so that the order of names is never right by chance.
NAMES = ["silver", "gold", "bronze"]


def labelled(names: Any) -> np.ndarray:
    return np.asarray(names)[CLASS]


@cache
def model_of(*names: Any) -> bytes:
    return bytes(skl2onnx_model(LogisticRegression(), ROWS, labelled(names)).SerializeToString())


def csv(labels: Any, *, rows: np.ndarray = ROWS) -> bytes:
    table = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(label=labels)
    return table.to_csv(index=False).encode()


def arrays(labels: Any) -> bytes:
    return npz(inputs=ROWS, labels=labels)


OWN = sorted(NAMES)
BY_NAME = csv(labelled(OWN))


OTHER_NAMES = [
    # A label that is no class, nearly one; the names in another order than the model's.
    ([0, 1, 2], NAMES, ["Silver", "gold", "bronze"], "did you mean"),
    (OWN, ["bronze", "gold", "sliver"], None, "did you mean 'silver'?"),
    (OWN, OWN, ["silver", "gold", "bronze"], ""),
]


@pytest.mark.parametrize(("own", "labels", "classes", "named"), OTHER_NAMES)
def test_names_that_are_not_the_models_are_refused(client, own, labels, classes, named) -> None:
    response = dry_run(client, csv(labelled(labels)), model=model_of(*own), classes=classes)
    assert_refused(response, None if named else "config.classes[0]", named)


def test_classes_may_be_written_with_other_capitals(client) -> None:
    classes = ["Bronze", "Gold", "Silver"]
    tried = dry_run(client, BY_NAME, model=model_of(*OWN), classes=classes).json()
    assert tried["config"]["classes"] == classes
    assert tried["accuracy"]["value"] > 0.9


def test_a_missing_class_is_no_matter_where_the_model_names_it(client) -> None:
    has = CLASS > 0
    tried = dry_run(client, csv(labelled(OWN)[has], rows=ROWS[has]), model=model_of(*OWN)).json()
    assert tried["data"]["class_counts"] == [0, *np.bincount(CLASS)[1:].tolist()]
    assert tried["accuracy"]["value"] > 0.9


@pytest.mark.parametrize(("own", "written"), [([-1, 1, 2], csv), ([1, 2, 3], arrays)])
def test_integers_that_the_model_has_as_names_are_names(client, own, written) -> None:
    labels = labelled(own)
    made = calibrated(client, model=model_of(*own), calibration=written(labels))
    assert made["accuracy"]["1"] > 0.9
    assert made["data"]["class_counts"] == np.bincount(CLASS).tolist()
    assert any("model's own names" in note for note in made["warnings"])
    body = {"calibration": made["id"], "inputs": ROWS.tolist()}
    predicted = [row["label"] for row in client.post("/predict", json=body).json()["predictions"]]
    assert np.mean(np.array(predicted) == labels.astype(str)) > 0.9
    result = evaluate(client, made["id"], "later", written(labels)).json()["result"]
    assert result["events"]["1"]["accuracy"] == pytest.approx(made["accuracy"]["1"])


def test_names_in_arrays_are_read_as_in_tables(client) -> None:
    names, model = labelled(OWN), model_of(*OWN)
    for kind in ("U", "S"):
        tried = dry_run(client, arrays(names.astype(kind)), model=model).json()
        assert tried["accuracy"]["value"] > 0.9
        assert tried["data"]["class_counts"] == np.bincount(CLASS).tolist()
    names[7] = "brass"
    answer = dry_run(client, arrays(names.astype(kind)), model=model)
    assert_refused(answer, "calibration", "brass", "bronze")


def test_a_note_tells_which_order_the_names_have(client) -> None:
    """It is the model's own, or that of the names if nobody else knows them."""
    by_order = "Classes were numbered in the order of their names"
    for own, start in ((OWN, "Labels are read as the model's own"), ([0, 1, 2], by_order)):
        made = dry_run(client, BY_NAME, model=model_of(*own)).json()
        (note,) = [one for one in made["warnings"] if one.startswith(("Labels are", by_order))]
        assert note.startswith(start)
        assert "bronze=0, gold=1, silver=2" in note


@pytest.mark.parametrize("own", [[1, 2, 3], [0, 1, 3]], ids=["from 1", "with a gap"])
def test_integers_that_the_model_lacks_are_no_indices(client, own) -> None:
    answer = dry_run(client, csv(CLASS), model=model_of(*own))
    assert_refused(answer, None, ", ".join(map(str, own)), "class_map")


@pytest.mark.parametrize(("written", "added"), [(csv, -1), (arrays, 1)], ids=["csv", "npz"])
def test_integers_that_nobody_knows_name_class_map(client, written, added) -> None:
    content, model = written(CLASS + added), model_of(0, 1, 2)
    assert_refused(dry_run(client, content, model=model), None, "class_map")
    class_map = {str(label + added): label for label in range(3)}
    tried = dry_run(client, content, model=model, class_map=class_map).json()
    assert tried["accuracy"]["value"] > 0.9


def test_an_evaluation_set_has_the_classes_of_the_calibration(client) -> None:
    capitals = csv(labelled([name.title() for name in NAMES]))
    parts = {"model": model_of(0, 1, 2), "evaluation": capitals}
    assert_refused(dry_run(client, csv(CLASS), **parts, classes=NAMES), None, "did you mean")


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


COMPATIBLE = [({"cat": 0, "dog": 1}, {"dog": 1}), ({"cat": 0, "dog": 1}, None), (None, {"dog": 1})]


@pytest.mark.parametrize(("ours", "theirs"), COMPATIBLE)
def test_an_evaluation_set_may_lack_classes_or_names(ours, theirs) -> None:
    check_same_classes(info(ours), info(theirs))


@pytest.mark.parametrize("class_map", [{"cat": 0}, {"cat": 0, "tabby": 0, "dog": 1}, None])
def test_names_of_all_classes_are_theirs(class_map) -> None:
    assert class_names(info({"dog": 1, "cat": 0}), 2) == ["cat", "dog"]
    assert class_names(info(class_map), 2) is None


def test_names_that_differ_in_capitals_alone_keep_their_classes() -> None:
    check_class_names(CalibrationConfig(classes=["a", "A"]), ["a", "A"])
    with pytest.raises(InvalidConfig):
        check_class_names(CalibrationConfig(classes=["Silver", "Gold", "Bronze"]), OWN)
    with pytest.raises(InvalidConfig, match="own order, 'a', 'A', got 'A'"):
        check_class_names(CalibrationConfig(classes=["A", "a"]), ["a", "A"])


def test_labels_of_other_sets_are_doubted_unless_they_are_the_models_own_names(client) -> None:
    """The calibration set has these names; what another set's numbers mean is another question."""
    model, own, other = model_of(*OWN), labelled(OWN), labelled([2, 0, 1])

    def doubts(resource) -> list[str]:
        return [one["code"] for one in resource["findings"] if one["code"].startswith("labels-")]

    made = calibrated(client, {"name": "doubts"}, model=model, calibration=csv(own))
    assert doubts(made) == []
    for name, labels, codes in (("numbers", other, ["labels-shifted"]), ("names", own, [])):
        result = evaluate(client, "doubts", name, csv(labels)).json()["result"]
        assert doubts(result) == codes
    both = calibrated(client, model=model, calibration=csv(own), evaluation=csv(other))
    warnings = [one for one in both["findings"] if one["level"] == "warning"]
    (finding,) = [one for one in warnings if one["code"] != "samples-in-both-sets"]
    assert finding["code"] == "labels-shifted"  # and no accuracy that differs besides
    assert finding["message"].startswith("Evaluation set: ")
    remedy = remedy_of(finding, both)
    assert np.array_equal(followed(remedy.code, labels=other)["labels"], CLASS)
