"""Hostile configurations at POST /calibrate."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hostile_case import HostileCase
from keyed_service import logits_of

INVALID = (422, "invalid-config")
TOO_LARGE = (413, "too-large")


def case(
    name: str,
    config: Callable[[], str | bytes] | dict[str, Any],
    says: str = "config",
    expected: tuple[int, str] = INVALID,
    **more: Any,
) -> HostileCase:
    """The configuration of a calibration of logits, of three classes."""
    return HostileCase(
        name,
        lambda attacker, built: attacker.calibrate(logits_of(), config=built),
        *expected,
        says=says,
        build=(lambda: json.dumps(config)) if isinstance(config, dict) else config,
        **more,
    )


CASES = [
    case("no_json", lambda: "{"),
    case("nan", lambda: '{"interval":{"level":NaN}}'),
    case("infinity", lambda: '{"prior_strength":Infinity}'),
    case("100000_nested", lambda: '{"top_k":' + "[" * 100_000 + "]" * 100_000 + "}"),
    case("lone_surrogate", lambda: r'{"name":"\ud800"}'),
    case("bad_utf_8", lambda: b'{"name":"\xff"}', expected=(422, "invalid-input")),
    case("9_mebibytes", lambda: " " * (9 * 2**20), expected=TOO_LARGE),
    case("unknown_field", {"__proto__": {"admin": True}}, "config.__proto__"),
    case("15000_unknown_fields", lambda: json.dumps({f"k{k}": k for k in range(15_000)})),
    case(
        "30000_unknown_fields",
        lambda: json.dumps({f"k{k}": k for k in range(30_000)}),
        expected=TOO_LARGE,
    ),
    case("field_of_200_kilobytes", lambda: json.dumps({"k" * 200_000: 1})),
    case("name_of_a_parent", {"name": "../../etc/passwd"}, "config.name"),
    case("name_of_lines", {"name": "a\r\nSet-Cookie: x=1"}, "config.name"),
    case("name_of_200_kilobytes", {"name": "n" * 200_000}, "config.name"),
    case("bins_of_2_to_the_62", {"bins": 2**62}, "config.bins"),
    case("bins_of_400_digits", lambda: '{"bins":' + "9" * 400 + "}"),
    case("seed_of_2_to_the_64", {"seed": 2**64}, "config.seed"),
    case("folds_of_2_to_the_31", {"folds": 2**31}, "config.folds"),
    case("top_k_of_30000", lambda: json.dumps({"top_k": list(range(1, 30_000))}), "config.top_k"),
    case("measures_of_20000", lambda: json.dumps({"measures": ["entropy"] * 20_000})),
    case("dropout_passes_of_2_to_the_40", {"dropout": {"passes": 2**40}}, "config.dropout"),
    case("classes_of_nothing", {"classes": ["", "", ""]}, "config.classes"),
    case("class_of_200_kilobytes", {"classes": ["c" * 200_000, "b", "a"]}, "config.classes"),
    case("class_map_of_2_to_the_40", {"class_map": {"cat": 2**40}}, "config.class_map"),
    case("columns_of_nothing", {"columns": {"inputs": []}}, "config.columns"),
    case("targets_of_50000", lambda: json.dumps({"targets": [0.5] * 50_000}), "config.targets"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_refused(hostile, case: HostileCase) -> None:
    hostile(case)
