"""Calibrated files of many kinds of models answer as the service does."""

import numpy as np
import onnx
import pytest
from calibrated_files import Model, assert_answers, calibrate
from classifier_files import FILES
from onnx import shape_inference

N_ROWS = 5000


@pytest.fixture(scope="module", params=list(FILES))
def file(request):
    return FILES[request.param]()


@pytest.fixture(scope="module")
def calibrated(file):
    return calibrate(
        Model(file.data, batch=file.batch, companions=file.companions),
        file.draw(2000),
        said=file.said,
    )


@pytest.fixture(scope="module")
def rows(file):
    drawn = {name: array.copy() for name, array in file.draw(N_ROWS).items()}
    for array in drawn.values():
        array[7].flat[0] = np.nan
        array[8] = np.inf
    return drawn


def test_the_file_answers_as_the_service_does(calibrated, rows):
    answers = assert_answers(calibrated, rows)
    assert len(np.unique(answers["top1_bin"])) > 4
    n_rows = len(answers["class"])
    assert n_rows == N_ROWS
    assert all(answers[name].shape[0] == n_rows for name in calibrated.expected(rows))


def test_the_models_own_interface_stays(file, calibrated, rows):
    original = onnx.load_from_string(file.data)
    assert list(calibrated.graph.graph.input) == list(original.graph.input)
    n_outputs = len(original.graph.output)
    assert list(calibrated.graph.graph.output)[:n_outputs] == list(original.graph.output)
    answers = calibrated.answer(rows)
    for name, values in calibrated.model.run(original, rows).items():
        np.testing.assert_equal(answers[name], values, err_msg=name)


def test_onnx_finds_nothing_to_complain_of(file, calibrated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, data in file.companions.items():
        (tmp_path / name).write_bytes(data)
    onnx.checker.check_model(calibrated.graph, full_check=True)
    shape_inference.infer_shapes(calibrated.graph, strict_mode=True, data_prop=True)


def test_the_versions_stay(file, calibrated):
    original = onnx.load_from_string(file.data)
    versions = {entry.domain: entry.version for entry in original.opset_import}
    found = {entry.domain: entry.version for entry in calibrated.graph.opset_import}
    assert found.get("ai.onnx.ml") == versions.get("ai.onnx.ml")
    assert found[""] == max(11, versions.get("", 11))
    least = onnx.helper.find_min_ir_version_for(calibrated.graph.opset_import, ignore_unknown=True)
    assert calibrated.graph.ir_version == min(original.ir_version, max(10, least))
