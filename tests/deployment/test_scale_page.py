"""The numbers of docs/scale.md."""

import math

import pytest
from deployment_files import PAGE

from service.runner.messages.dataset import ArrayInfo, DatasetInfo, shard_rows

ARRAYS = [
    ArrayInfo("uint8", (10**6, 224, 224, 3)),
    ArrayInfo("uint8", (10**7, 224, 224, 3)),
    ArrayInfo("float32", (10**9, 1000)),
]


@pytest.mark.parametrize("column", range(len(ARRAYS)))
def test_shard_sizes_are_those_of_the_service(column: int) -> None:
    n_samples, info = ARRAYS[column].shape[0], {"x": ARRAYS[column]}
    rows = shard_rows(DatasetInfo("inputs", "npz", info, n_samples, None, (), labelled=True))
    shards = math.ceil(n_samples / rows)
    assert cells("rows of a shard")[column] == f"{rows:,}"
    assert cells("shards, *s*")[column] == f"{shards:,}"
    assert cells("artifact rows in the database")[column] == f"{2 * shards:,}"


def cells(what: str) -> list[str]:
    """Return the numbers of a row of the table of sizes."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {what} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][2:]
