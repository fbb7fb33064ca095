"""Calibrated files of many kinds of models answer as the service does."""

import numpy as np
import onnx
import pytest
from calibrated_files import Model, assert_answers, calibrate
from classifier_files import FILES
from onnx import shape_inference

N_ROWS = 1000


@pytest.mark.parametrize("name", FILES)
def test_the_file_answers_as_the_service_does_and_the_model_stays(name, tmp_path, monkeypatch):
    file = FILES[name]()
    model = Model(file.data, batch=file.batch, companions=file.companions)
    calibrated = calibrate(model, file.draw(2000), said=file.said)
    rows = {name: array.copy() for name, array in file.draw(N_ROWS).items()}
    for array in rows.values():
        array[7].flat[0] = np.nan
        array[8] = np.inf
    answers = assert_answers(calibrated, rows)
    assert len(np.unique(answers["top1_bin"])) > 4
    assert {len(answers[name]) for name in calibrated.expected(rows)} == {N_ROWS}
    # The model's own interface.
    original = onnx.load_from_string(file.data)
    assert list(calibrated.graph.graph.input) == list(original.graph.input)
    n_outputs = len(original.graph.output)
    assert list(calibrated.graph.graph.output)[:n_outputs] == list(original.graph.output)
    own = calibrated.model.run(original, rows)
    np.testing.assert_equal({name: answers[name] for name in own}, own)
    # The versions.
    before, after = (
        {entry.domain: entry.version for entry in graph.opset_import}
        for graph in (original, calibrated.graph)
    )
    assert after.get("ai.onnx.ml") == before.get("ai.onnx.ml")
    assert after[""] == max(11, before.get("", 11))
    least = onnx.helper.find_min_ir_version_for(calibrated.graph.opset_import, ignore_unknown=True)
    assert calibrated.graph.ir_version == min(original.ir_version, max(10, least))
    # ONNX finds nothing to complain of.
    monkeypatch.chdir(tmp_path)
    for companion, data in file.companions.items():
        (tmp_path / companion).write_bytes(data)
    onnx.checker.check_model(calibrated.graph, full_check=True)
    shape_inference.infer_shapes(calibrated.graph, strict_mode=True, data_prop=True)
