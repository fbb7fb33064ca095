"""Preprocessing in the configuration is resolved, or refused by a named rule."""

import json

import pytest
from pydantic import ValidationError

from service.calibrations.config import CalibrationConfig, parse_config
from service.errors import InvalidConfig
from service.runner.messages.preprocessing import PRESETS, Preprocessing


def resolved(asked: object) -> Preprocessing:
    found = parse_config(json.dumps({"preprocessing": asked}), CalibrationConfig).preprocessing
    assert found is not None
    return found.resolved()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_named(preset: str) -> None:
    assert resolved(preset) == PRESETS[preset] == resolved({"preset": preset})


def test_keys_stand_above_their_preset_and_null_takes_it_back() -> None:
    found = resolved({"preset": "imagenet", "resize": 232, "layout": "nhwc"})
    assert (found.resize, found.crop, found.layout) == (232, (224, 224), "nhwc")
    assert found.mean == (0.485, 0.456, 0.406)
    found = resolved({"preset": "clip", "resize": None, "crop": None})
    assert (found.resize, found.crop) == (None, None)


def test_one_number_is_both_sides_of_a_crop_and_the_shorter_side_of_a_picture() -> None:
    found = resolved({"resize": 40, "crop": 32})
    assert (found.resize, found.crop) == (40, (32, 32))
    assert resolved({"resize": [40, 50]}).resize == (40, 50)


def test_grey_pictures_have_one_number_a_channel() -> None:
    found = resolved({"colour": "grey", "mean": [0.5], "std": [0.25], "layout": "nhw"})
    assert (found.channels, found.mean, found.std) == (1, (0.5,), (0.25,))
    assert resolved({"colour": "grey", "mean": 0.5, "std": 1}).mean == (0.5,)
    assert resolved({"colour": "grey"}).mean == (0.0,)


@pytest.mark.parametrize("preset", PRESETS)
def test_what_was_resolved_is_a_configuration_again(preset: str) -> None:
    stored = json.loads(json.dumps(PRESETS[preset].as_dict()))
    again = CalibrationConfig.model_validate({"preprocessing": stored}).preprocessing
    assert again is not None
    assert again.resolved() == PRESETS[preset]
    assert Preprocessing.from_dict(stored) == PRESETS[preset]


@pytest.mark.parametrize(
    ("asked", "location", "told"),
    [
        (
            "imagnet",
            ".preset",
            '"imagenet" or "clip" or "unit" or "none"; did you mean \'imagenet\'?',
        ),
        (
            {"preset": "imagenet", "colour": "grey"},
            "",
            'give one number for mean and one for std, or use the preset "unit"',
        ),
        ({"mean": [0.5]}, "", "expected 3 numbers"),
        ({"mean": 0.5}, "", "expected 3 numbers"),
        ({"mean": True, "colour": "grey"}, ".mean", "expected"),
        ({"std": [1, 0, 1]}, "", "above 0"),
        ({"layout": "nhw"}, "", "colour grey"),
        ({"resize": 200, "crop": 224}, "", "larger than what resize makes"),
        ({"crop": [1, 2, 3]}, ".crop", "2 items"),
        ({"resize": 0}, ".resize", "from 1"),
        ({"size": 3}, ".size", "no such key"),
    ],
)
def test_what_is_wrong_is_named(asked: object, location: str, told: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        resolved(asked)
    (violation,) = caught.value.violations
    assert violation.location == f"config.preprocessing{location}"
    assert told in violation.message


def test_columns_are_one_or_several() -> None:
    asked = {"columns": {"ids": "input_ids", "x": ["age", "height"]}}
    found = parse_config(json.dumps(asked), CalibrationConfig).columns
    assert found == {"ids": ["input_ids"], "x": ["age", "height"]}
    with pytest.raises(InvalidConfig, match="at least 1 item"):
        parse_config('{"columns": {"x": []}}', CalibrationConfig)


def test_numbers_that_are_not_finite_are_refused_in_python_too() -> None:
    with pytest.raises(ValidationError):
        CalibrationConfig.model_validate({"preprocessing": {"mean": [0.0, float("nan"), 0.0]}})
