"""The numbers of docs/scale.md."""

import math
import re

from deployment_files import PAGE

from service.runner.messages.dataset import ArrayInfo, DatasetInfo, shard_rows

ARRAYS = [
    ArrayInfo("uint8", (10**6, 224, 224, 3)),
    ArrayInfo("uint8", (10**7, 224, 224, 3)),
    ArrayInfo("float32", (10**9, 1000)),
]


def test_shard_sizes_are_those_of_the_service() -> None:
    sizes = [(info.shape[0], rows_of_a_shard(info)) for info in ARRAYS]
    shards = [math.ceil(n_samples / rows) for n_samples, rows in sizes]
    assert cells("rows of a shard") == [rows for _, rows in sizes]
    assert cells("shards, *s*") == shards
    assert cells("artifact rows in the database") == [2 * number for number in shards]


def rows_of_a_shard(info: ArrayInfo) -> int:
    data = DatasetInfo("inputs", "npz", {"x": info}, info.shape[0], None, (), labelled=True)
    return shard_rows(data)


def cells(what: str) -> list[int]:
    """Return the numbers of a row of the table of sizes."""
    (line,) = re.findall(rf"^\| {re.escape(what)} \|[^|]*\|(.*)\|$", PAGE, re.MULTILINE)
    return [int(cell.replace(",", "")) for cell in line.split("|")]
