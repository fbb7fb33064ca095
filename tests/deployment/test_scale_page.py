"""What docs/scale.md says can be typed, and computed."""

import re
from pathlib import Path

import pytest
import yaml
from deployed_commands import check_command, check_settings, commands_of_page
from scipy.stats import beta

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
COMMANDS = commands_of_page(PAGE)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_is_one_that_there_is(words: list[str]) -> None:
    check_command(words)


def test_it_shows_each_way_of_running_it() -> None:
    shown = {tuple(words[:2]) for words in COMMANDS}

    assert shown >= {
        ("howsure", "serve"),
        ("howsure", "worker"),
        ("dask", "scheduler"),
        ("dask", "worker"),
    }


def test_settings_are_those_that_there_are() -> None:
    check_settings(PAGE)


def test_its_compose_commands_name_what_the_file_has() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    profiles = {found for service in services.values() for found in service.get("profiles", [])}

    assert set(re.findall(r"--profile (\S+)", PAGE)) <= profiles
    assert set(re.findall(r"--scale (\S+)=", PAGE)) <= services.keys()


def test_the_half_widths_are_those_of_clopper_and_pearson() -> None:
    rows = re.findall(r"^\| ([\d,]+) \|((?: ±[\d.]+ \|){3})$", PAGE, re.MULTILINE)
    assert len(rows) >= 4
    for count, cells in rows:
        n = int(count.replace(",", ""))
        shown = [float(found) for found in re.findall(r"±([\d.]+)", cells)]
        for rate, said in zip((0.5, 0.9, 0.99), shown, strict=True):
            assert said == pytest.approx(half_width(n, rate), rel=0.06)


def half_width(n: int, rate: float) -> float:
    hits = round(n * rate)
    lower, upper = beta.ppf(0.025, hits, n - hits + 1), beta.ppf(0.975, hits + 1, n - hits)
    return (upper - lower) / 2
