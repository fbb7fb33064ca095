"""What docs/scale.md says can be typed, and computed."""

import math
import re
from pathlib import Path

import pytest
import yaml
from deployed_commands import check_command, check_settings, commands_of_page
from scipy.stats import beta

from service.runner.messages.dataset import ArrayInfo, DatasetInfo
from service.storage.shards import shard_rows

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


def test_the_sizes_are_those_of_shards() -> None:
    images = ArrayInfo("uint8", (10**6, 224, 224, 3)), ArrayInfo("uint8", (10**7, 224, 224, 3))
    for column, array in enumerate([*images, ArrayInfo("float32", (10**9, 1000))]):
        n_samples = array.shape[0]
        rows = shard_rows(
            DatasetInfo("inputs", "npz", {"x": array}, n_samples, None, (), labelled=True)
        )
        shards = math.ceil(n_samples / rows)
        assert cells("rows of a shard")[column] == f"{rows:,}"
        assert cells("shards, *s*")[column] == f"{shards:,}"
        assert cells("artifact rows in the database")[column] == f"{2 * shards:,}"


def cells(what: str) -> list[str]:
    """Return the numbers of a row of the table of sizes."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {what} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][2:]


def half_width(n: int, rate: float) -> float:
    hits = round(n * rate)
    lower, upper = beta.ppf(0.025, hits, n - hits + 1), beta.ppf(0.975, hits + 1, n - hits)
    return (upper - lower) / 2
