"""Class names of a set must agree with the classes of the model."""

import pytest

from service.calibrations.class_indices import check_class_names
from service.calibrations.config import CalibrationConfig
from service.calibrations.set_checks import check_class_map, check_same_classes, class_names
from service.errors import InvalidConfig, InvalidDataset
from service.runner.messages.dataset import DatasetInfo

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
