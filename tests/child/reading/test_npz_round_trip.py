"""What numpy writes is read back equal, in batches of any size."""

import tempfile
from pathlib import Path

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from dataset_files import LIMITS, info_of, read_all, write_npz
from hypothesis import given, settings
from hypothesis import strategies as st
from own_process import peak_of

from service.child.reading.open_set import open_dataset
from service.runner.messages.dataset import ArrayInfo

DTYPES = [
    np.dtype(order + kind)
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "b1")
    for order in "<>"
]
LABEL_DTYPES = [dtype for dtype in DTYPES if dtype.kind in "iu"]


@st.composite
def labelled_inputs(draw: st.DrawFn) -> dict[str, np.ndarray]:
    n_samples = draw(st.integers(1, 40))
    row_shapes = npst.array_shapes(min_dims=0, max_dims=3, max_side=4)
    names = draw(
        st.lists(st.sampled_from(["inputs", "image", "block/x:0"]), min_size=1, unique=True)
    )
    arrays = {}
    for name in names:
        dtype = draw(st.sampled_from(DTYPES))
        elements = None
        if dtype.kind == "f":
            elements = st.floats(-1e4, 1e4, width=16).map(float)
        shape = (n_samples, *draw(row_shapes))
        values = draw(npst.arrays(dtype, shape, elements=elements))
        arrays[name] = np.asarray(values, order=draw(st.sampled_from("CF")))
    labels = draw(npst.arrays(np.int64, n_samples, elements=st.integers(0, 99)))
    return arrays | {"labels": labels.astype(draw(st.sampled_from(LABEL_DTYPES)))}


@settings(deadline=None, max_examples=150)
@given(arrays=labelled_inputs(), batch_size=st.integers(1, 50), compressed=st.booleans())
def test_inputs_come_back_as_numpy_wrote_them(*, arrays, batch_size, compressed):
    with tempfile.TemporaryDirectory() as folder:
        path = write_npz(Path(folder) / "set.npz", compressed=compressed, **arrays)
        found, labels = read_all(path, batch_size=batch_size)
    np.testing.assert_array_equal(labels, arrays.pop("labels"))
    assert labels.dtype == np.int64
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype.newbyteorder("=")
        assert found[name].dtype.isnative


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_outputs_come_back_with_their_classes(tmp_path, kind, dtype):
    rng = np.random.default_rng(1)
    outputs = rng.dirichlet(np.ones(10), size=33).astype(dtype)
    labels = rng.integers(0, 10, 33)
    path = write_npz(tmp_path / "a", **{kind: outputs, "labels": labels}).with_suffix(".npz")
    info = info_of(path)
    assert (info.kind, info.format, info.n_samples, info.n_classes) == (kind, "npz", 33, 10)
    assert info.arrays == {kind: ArrayInfo(outputs.dtype.name, (33, 10))}
    assert info.row_bytes == 10 * outputs.dtype.itemsize
    found, _ = read_all(path)
    np.testing.assert_array_equal(found[kind], outputs)


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "?", "i1", ">u8"])
def test_whole_numbers_and_booleans_are_labels(tmp_path, dtype):
    labels = (np.arange(33) % 2).astype(dtype)
    arrays = {"inputs": np.ones((33, 2), np.float32), "labels": labels}
    _, found = read_all(write_npz(tmp_path / "a", **arrays).with_suffix(".npz"))
    assert found.dtype == np.int64
    assert found.tolist() == [0, 1] * 16 + [0]


@pytest.mark.parametrize("compressed", [False, True])
def test_memory_does_not_grow_with_the_samples(path, *, compressed):
    n_samples = 320_000
    path = write_npz(
        path,
        compressed=compressed,
        inputs=np.zeros((n_samples, 25), np.float32),
        labels=np.zeros(n_samples, np.int64),
    )

    def read() -> None:
        with open_dataset(path, location="calibration", limits=LIMITS) as dataset:
            assert sum(len(batch.labels) for batch in dataset.batches(256)) == n_samples

    assert peak_of(read) < 4_000_000 < n_samples * 25 * 4 / 7
