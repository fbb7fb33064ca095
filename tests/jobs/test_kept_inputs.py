"""None, some or all samples of a set stay stored after its job."""

import dataclasses
import io
import uuid

import numpy as np
import pytest
from job_workspaces import (
    calibrate,
    ended,
    evaluate,
    finish,
    inputs_set,
    packed,
    predictor_of,
    shard_task,
    swept_keys,
    wait_for,
    working,
    workspace_on,
)
from runner_models import linear, rows, weights

from service.errors import Conflict
from service.exports.export import exported_file
from service.jobs.acceptance import CallContext
from service.jobs.samples import MOST_BYTES, MOST_ROWS, rows_to_keep
from service.storage.artifact_keys import JobFiles
from service.storage.artifact_rows import NewArtifact

pytestmark = pytest.mark.process

N_SAMPLES, N_EVALUATION, SHARD = 4500, 60, 4096
# Little to fit: the files are what it is about.
CONFIG = '{"bins": 5, "top_k": [1], "measures": ["margin"], "folds": 2}'
KEPT = [("evaluation_records", 0), ("records", 0), ("records", 1)]
SAMPLES = [("samples", 0)]
SETS = [("calibration", 0), ("calibration", 1), ("evaluation", 0)]
EXPECTED = {"some": KEPT + SAMPLES, "all": KEPT + SAMPLES + SETS}


def arrays_of(n_samples: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n_samples, 3)).astype(np.float32)
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    return {"logits": logits, "labels": labels}


CALIBRATION, EVALUATION = arrays_of(N_SAMPLES, 1), arrays_of(N_EVALUATION, 2)


def unpacked(workspace, file) -> dict[str, np.ndarray]:
    content = workspace.artifacts.get_bytes(file.key, file.sha256)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


def roles_of(row) -> list[tuple[str, int]]:
    return sorted((file.role, file.position) for file in row.artifacts)


def files_of(row, role) -> list:
    return sorted((f for f in row.artifacts if f.role == role), key=lambda file: file.position)


@pytest.mark.parametrize("keep_inputs", EXPECTED)
def test_what_stays_of_the_sets(database, tmp_path, keep_inputs) -> None:
    with workspace_on(database, tmp_path, keep_inputs=keep_inputs) as workspace:
        sets = (packed(**CALIBRATION), packed(**EVALUATION))
        job = calibrate(workspace, sets[0], evaluation=sets[1], config=CONFIG)
        assert roles_of(job) == SETS
        with working(workspace):
            row = wait_for(workspace, job, ended)
            further = evaluate(workspace, row, sets[1])
            judged = wait_for(workspace, further, ended)
        assert (row.status, judged.status) == ("succeeded", "succeeded")
        assert roles_of(row) == sorted(EXPECTED[keep_inputs])
        kept = [("evaluation", 0)] * (keep_inputs == "all")
        assert roles_of(judged) == [*kept, ("evaluation_records", 0)]
        named = sorted(file.key for file in [*row.artifacts, *judged.artifacts])
        assert swept_keys(workspace) == named
        assert_samples_belong_together(workspace, row)


def assert_samples_belong_together(workspace, row) -> None:
    """The samples are rows of the set that was sent, and the records are theirs."""
    (file,) = files_of(row, "samples")
    kept = unpacked(workspace, file)
    index = kept.pop("index")
    assert len(index) == MOST_ROWS
    assert (np.diff(index) > 0).all()
    assert (index < SHARD).any()
    assert (index >= SHARD).any()
    np.testing.assert_array_equal(kept.pop("input/logits"), CALIBRATION["logits"][index])
    np.testing.assert_array_equal(kept["record/label"], CALIBRATION["labels"][index])
    parts = [unpacked(workspace, part) for part in files_of(row, "records")]
    assert {str(part.pop("provider")) for part in parts} == {""}  # there was no model
    assert kept.keys() == {f"record/{name}" for name in parts[0]}
    for name in parts[0]:
        whole = np.concatenate([part[name] for part in parts])
        assert len(whole) == N_SAMPLES
        np.testing.assert_array_equal(kept[f"record/{name}"], whole[index], err_msg=name)
    suspects = [found["index"] for found in row.mislabelled["1"]]
    assert set(suspects) <= set(index.tolist())


LARGE = [(1, MOST_ROWS), (MOST_BYTES // 1000, 1000), (MOST_BYTES // 10, 10), (MOST_BYTES * 2, 1)]


@pytest.mark.parametrize(("row_bytes", "kept"), LARGE)
def test_fewer_of_large_samples(row_bytes, kept) -> None:
    shard = NewArtifact("calibration", 0, "c.npz", "key", "0" * 64, 4 * row_bytes)
    small = shard_task(JobFiles.of(uuid.uuid4()), dataclasses.replace(shard, size=4), 0, 4)
    assert rows_to_keep([small, dataclasses.replace(small, shard=shard)]) == kept


def test_without_samples_a_model_serves_and_is_not_exported(database, tmp_path) -> None:
    with workspace_on(database, tmp_path, keep_inputs="none") as workspace:
        onnx_model = linear(weights()).SerializeToString()
        job = calibrate(workspace, inputs_set(100), onnx_model=onnx_model, config=CONFIG)
        row = finish(workspace, job)
        assert roles_of(row) == [("model", 0), ("records", 0)]
        assert swept_keys(workspace) == sorted(file.key for file in row.artifacts)
        with predictor_of(workspace) as predictor:
            assert len(predictor.ask(str(row.id), rows(3).tolist())["predictions"]) == 3
        with (
            pytest.raises(Conflict, match="samples"),
            exported_file(CallContext(workspace, row.tenant_id), str(row.id)),
        ):
            pass
