"""Preprocessing in the configuration is resolved, or refused by a named rule."""

import json

import pytest
from pydantic import ValidationError

from howsure.preprocessing import PRESETS, Preprocessing
from service.calibrations.config import CalibrationConfig, parse_config
from service.errors import InvalidConfig


def resolved(preprocessing: object) -> Preprocessing:
    config = parse_config(json.dumps({"preprocessing": preprocessing}), CalibrationConfig)
    assert config.preprocessing is not None
    return config.preprocessing.resolved()


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_named_and_what_was_resolved_is_a_configuration_again(preset: str) -> None:
    assert resolved(preset) == PRESETS[preset] == resolved({"preset": preset})
    stored = json.loads(json.dumps(PRESETS[preset].as_dict()))
    assert resolved(stored) == PRESETS[preset] == Preprocessing.from_dict(stored)


IMAGENET_MEAN = (0.485, 0.456, 0.406)


RESOLVED = [
    # Keys stand above their preset, and null takes it back.
    (
        {"preset": "imagenet", "resize": 232, "layout": "nhwc"},
        {"resize": 232, "crop": (224, 224), "layout": "nhwc", "mean": IMAGENET_MEAN},
    ),
    ({"preset": "clip", "resize": None, "crop": None}, {"resize": None, "crop": None}),
    # One number is both sides of a crop, and the shorter side of a picture.
    ({"resize": 40, "crop": 32}, {"resize": 40, "crop": (32, 32)}),
    ({"resize": [40, 50]}, {"resize": (40, 50)}),
    # Grey pictures have one number a channel.
    (
        {"colour": "grey", "mean": [0.5], "std": [0.25], "layout": "nhw"},
        {"channels": 1, "mean": (0.5,), "std": (0.25,)},
    ),
    ({"colour": "grey", "mean": 0.5, "std": 1}, {"mean": (0.5,)}),
    ({"colour": "grey"}, {"mean": (0.0,)}),
]


@pytest.mark.parametrize(("config", "expected"), RESOLVED)
def test_keys_are_resolved(config, expected) -> None:
    preprocessing = resolved(config)
    assert {name: getattr(preprocessing, name) for name in expected} == expected


WRONG = [
    ("imagnet", ".preset", "did you mean 'imagenet'?"),
    ({"preset": "imagenet", "colour": "grey"}, "", '"unit"'),
    ({"mean": [0.5]}, "", "3 numbers"),
    ({"mean": 0.5}, "", "3 numbers"),
    ({"mean": True, "colour": "grey"}, ".mean", "expected"),
    ({"std": [1, 0, 1]}, "", "above 0"),
    ({"layout": "nhw"}, "", "grey"),
    ({"resize": 200, "crop": 224}, "", "resize"),
    ({"crop": [1, 2, 3]}, ".crop", "2 items"),
    ({"resize": 0}, ".resize", "from 1"),
    ({"size": 3}, ".size", "key"),
]


@pytest.mark.parametrize(("config", "location", "named"), WRONG)
def test_what_is_wrong_is_named(config: object, location: str, named: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        resolved(config)
    (violation,) = refused.value.violations
    assert violation.location == f"config.preprocessing{location}"
    assert named in violation.message


def test_columns_are_one_or_several() -> None:
    text = '{"columns": {"ids": "input_ids", "x": ["age", "height"]}}'
    columns = parse_config(text, CalibrationConfig).columns
    assert columns == {"ids": ["input_ids"], "x": ["age", "height"]}
    with pytest.raises(InvalidConfig, match="at least 1 item"):
        parse_config('{"columns": {"x": []}}', CalibrationConfig)


def test_numbers_that_are_not_finite_are_refused_in_python_too() -> None:
    with pytest.raises(ValidationError):
        CalibrationConfig.model_validate({"preprocessing": {"mean": [0.0, float("nan"), 0.0]}})
