"""What CSV and Parquet share: columns by name, limits, streams of constant memory."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from dataset_files import (
    LIMITS,
    TABLE_FORMATS,
    info_of,
    output_columns,
    read_all,
    write_columns,
    write_parquet,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from service.child.reading.open_set import open_dataset
from service.runner.messages.dataset import ArrayInfo


@settings(deadline=None, max_examples=40)
@given(data=st.data(), prefix=st.sampled_from(["logit_", "prob_"]), batch_size=st.integers(1, 60))
def test_columns_are_read_by_name(tmp_path_factory, data, prefix, batch_size):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_samples, n_classes = data.draw(st.integers(1, 50)), data.draw(st.integers(2, 12))
    outputs = rng.dirichlet(np.ones(n_classes), size=n_samples)
    labels = rng.integers(0, n_classes, n_samples)
    table = output_columns(outputs, labels, prefix) | {"uncertainty_human": rng.random(n_samples)}
    order = data.draw(st.permutations(list(table)))
    folder = tmp_path_factory.mktemp("tables")
    ordered = {name: table[name] for name in order}
    for file_format in TABLE_FORMATS:
        path = write_columns(folder / f"set.{file_format}", file_format, ordered)
        found, found_labels = read_all(path, batch_size=batch_size)
        (values,) = found.values()
        np.testing.assert_array_equal(values, outputs)
        np.testing.assert_array_equal(found_labels, labels)
        assert values.flags.c_contiguous
        info = info_of(path)
        kind = {"logit_": "logits", "prob_": "probabilities"}[prefix]
        assert (info.kind, info.format) == (kind, path.suffix[1:])
        assert info.arrays == {kind: ArrayInfo("float64", (n_samples, n_classes))}
        assert (info.n_samples, info.n_classes) == (n_samples, n_classes)
        assert info.supplied == ("human",)


@pytest.mark.parametrize("suffix", TABLE_FORMATS)
def test_memory_does_not_grow_with_the_rows(tmp_path, suffix):
    n_samples = 600_000
    rng = np.random.default_rng(0)
    table = output_columns(
        rng.normal(size=(n_samples, 5)).astype(np.float32), rng.integers(0, 5, n_samples)
    )
    path = tmp_path / f"set.{suffix}"
    if suffix == "csv":
        pa_csv.write_csv(pa.table(table), path)
    else:
        write_parquet(path, table)
    assert path.stat().st_size > 12_000_000
    del table
    before = pa.total_allocated_bytes()
    peak = 0
    with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
        for _ in dataset.batches(1000):
            peak = max(peak, pa.total_allocated_bytes() - before)
    # Blocks of CSV read ahead; pages, dictionaries and buffers of Parquet. The set has 29 MB.
    assert peak < 20_000_000
