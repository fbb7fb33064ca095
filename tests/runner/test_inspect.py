import numpy as np
import pytest
from forked_children import SERVER
from graph_models import constant, make_model, node, value
from onnx import TensorProto
from runner_models import (
    N_FEATURES,
    endless_above,
    from_integers,
    linear,
    rows,
    save,
    softmax_of_two,
    weights,
    with_external_weights,
)

from service.errors import (
    InferenceFailed,
    InvalidConfig,
    InvalidDataset,
    InvalidOnnxModel,
    TooLarge,
)
from service.runner.messages.onnx_models import OnnxModelFiles
from service.runner.pool import RunnerPool


def inspect(pool, files, trial=None, *, top_k=(1, 5), **options):
    return pool.inspect(
        files, top_k=top_k, trial={"x": rows(20)} if trial is None else trial, **options
    )


def test_a_model_is_described(pool, tmp_path):
    loaded = inspect(pool, save(tmp_path, linear()))
    assert [(t.name, t.dtype, t.shape) for t in loaded.description.inputs] == [
        ("x", "float32", (None, N_FEATURES))
    ]
    assert (loaded.output.name, loaded.output.kind, loaded.n_classes) == ("y", "logits", 10)
    assert loaded.top_k == (1, 5)
    assert loaded.description.fixed_batch is None
    assert loaded.provider == "CPUExecutionProvider"
    assert loaded.versions.keys() == {"numpy", "onnx", "onnxruntime"}
    assert "20 rows" in loaded.output.inferred


def test_probabilities_are_read_before_their_softmax(pool, tmp_path):
    trial = {"left": rows(9), "right": rows(9, seed=2)}
    loaded = inspect(pool, save(tmp_path, softmax_of_two(weights())), trial)
    assert (loaded.output.name, loaded.output.tensor, loaded.output.kind) == ("y", "z", "logits")


def test_the_caller_s_choice_of_output_is_taken(pool, tmp_path):
    files = save(tmp_path, linear())
    assert inspect(pool, files, output={"name": "y", "kind": "logits"}).output.name == "y"
    with pytest.raises(InvalidConfig) as caught:
        inspect(pool, files, output={"name": "z"})
    assert caught.value.violations[0].location == "config.output.name"


def test_events_that_the_classes_make_certain_are_left_out(pool, tmp_path):
    loaded = inspect(pool, save(tmp_path, linear(weights(4))), top_k=(1, 3, 4, 5))
    assert loaded.top_k == (1, 3)


def test_a_lone_array_may_be_called_inputs(pool, tmp_path):
    assert inspect(pool, save(tmp_path, linear()), {"inputs": rows(5)}).n_classes == 10


def test_external_weights_come_from_the_companion(pool, tmp_path):
    loaded = inspect(pool, with_external_weights(tmp_path, weights(200)))
    assert loaded.description.external_files == ("model.onnx.data",)
    assert loaded.n_classes == 200


def test_a_missing_companion_is_named(pool, tmp_path):
    files = with_external_weights(tmp_path, weights(200))
    with pytest.raises(InvalidOnnxModel, match=r"model\.onnx\.data"):
        inspect(pool, OnnxModelFiles(files.path))


def test_a_companion_cut_short_is_refused(pool, tmp_path):
    files = with_external_weights(tmp_path, weights(200))
    companion = files.companions["model.onnx.data"]
    companion.write_bytes(companion.read_bytes()[:-1])
    with pytest.raises(InvalidOnnxModel):
        inspect(pool, files)


@pytest.mark.parametrize("data", [b"", b"garbage" * 100, b"\x00" * 64, b"PK\x03\x04", b"ORTM" * 9])
def test_bytes_that_are_no_model_are_refused(pool, tmp_path, data):
    with pytest.raises(InvalidOnnxModel) as caught:
        inspect(pool, save(tmp_path, data))
    assert caught.value.violations[0].location == "model"


def test_a_truncated_model_is_refused(pool, tmp_path):
    data = linear().SerializeToString()
    for length in (len(data) - 1, len(data) // 2, 20):
        with pytest.raises(InvalidOnnxModel):
            inspect(pool, save(tmp_path, data[:length]))


def test_the_runtime_s_own_words_are_not_passed_on(pool, tmp_path):
    broken = make_model(
        [node("MatMul", ["x", "absent"], ["y"])],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", 10))],
    )
    with pytest.raises(InvalidOnnxModel) as caught:
        inspect(pool, save(tmp_path, broken))
    assert "onnxruntime/" not in caught.value.message
    assert "ONNXRuntimeError" not in caught.value.message
    assert str(tmp_path) not in caught.value.message
    assert caught.value.message.startswith("model: ONNX Runtime cannot load it: a node,")
    assert "absent" not in caught.value.message


def test_an_unknown_operator_is_refused(pool, tmp_path):
    model = make_model(
        [node("NoSuchOperator", ["x"], ["y"], domain="elsewhere")],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", 10))],
    )
    with pytest.raises(InvalidOnnxModel):
        inspect(pool, save(tmp_path, model))


def test_text_inputs_are_refused(pool, tmp_path):
    model = make_model(
        [node("StringNormalizer", ["x"], ["s"]), node("Identity", ["z"], ["y"])],
        inputs=[value("x", ("N",), TensorProto.STRING), value("z", ("N", 3))],
        outputs=[value("y", ("N", 3))],
    )
    with pytest.raises(InvalidOnnxModel, match="'x' str"):
        inspect(pool, save(tmp_path, model), {"z": rows(3)})


def test_rows_that_do_not_suit_are_named(pool, tmp_path):
    files = save(tmp_path, linear())
    for trial, location, words in [
        ({"x": rows(5)[:, 1:]}, "calibration.x", r"\[rows, 6\], got \[5, 5\]"),
        ({"x": rows(5)[:, 0]}, "calibration.x", r"\[rows, 6\], got \[5\]"),
        ({"x": rows(0)}, "calibration.x", "at least one row"),
        ({"x": np.array(["a"])}, "calibration.x", "numbers"),
        ({"y": rows(5)}, "calibration.y", "'x'"),
        ({"x": rows(5), "y": rows(5)}, "calibration.y", "'x'"),
        ({"x": rows(5), "y": rows(4)}, "calibration", "same number of rows"),
        ({}, "calibration", "at least one array"),
    ]:
        with pytest.raises(InvalidDataset, match=words) as caught:
            inspect(pool, files, trial)
        assert caught.value.violations[0].location == location


def test_a_number_an_integer_input_cannot_hold_is_named(pool, tmp_path):
    files = save(tmp_path, from_integers(weights()))
    bad = np.zeros((4, N_FEATURES))
    bad[2, 3] = 0.5
    with pytest.raises(InvalidDataset) as caught:
        inspect(pool, files, {"x": bad})
    assert caught.value.violations[0].location == "calibration.x[2][3]"


def test_a_model_with_too_many_classes_is_refused(tmp_path):
    with RunnerPool(
        device="cpu", threads=1, max_classes=9, start_child=SERVER.start_child
    ) as small:
        with pytest.raises(TooLarge, match="at most 9 classes, got 10"):
            inspect(small, save(tmp_path, linear()))
        assert inspect(small, save(tmp_path, linear(weights(9)))).n_classes == 9


def test_a_model_that_answers_at_random_is_refused(pool, tmp_path):
    model = make_model(
        [node("RandomUniformLike", ["x"], ["r"]), node("Mul", ["x", "r"], ["y"])],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", N_FEATURES))],
    )
    with pytest.raises(InvalidOnnxModel, match="draws at random"):
        inspect(pool, save(tmp_path, model), {"x": 10 * rows(50)})


def test_an_output_of_another_length_is_refused(pool, tmp_path):
    model = make_model(
        [node("ReduceMax", ["x"], ["y"], axes=[0], keepdims=1)],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", (None, N_FEATURES))],
    )
    with pytest.raises(InvalidOnnxModel, match="one row per sample"):
        inspect(pool, save(tmp_path, model))


def test_rows_without_a_finite_output_do_not_settle_the_choice(pool, tmp_path):
    trial = {"x": rows(3)}
    trial["x"][1] = np.nan
    assert inspect(pool, save(tmp_path, linear()), trial).n_classes == 10
    with pytest.raises(InvalidOnnxModel, match="not finite"):
        inspect(pool, save(tmp_path, linear()), {"x": np.full((3, N_FEATURES), np.nan)})


def test_a_name_that_is_no_text_is_refused(pool, tmp_path):
    data = linear().SerializeToString().replace(b"\n\x01x", b"\n\x01\xff")
    with pytest.raises(InvalidOnnxModel):
        inspect(pool, save(tmp_path, data))


def test_a_file_that_is_not_there_is_no_crash(pool, tmp_path):
    with pytest.raises(InferenceFailed) as caught:
        inspect(pool, OnnxModelFiles(tmp_path / "absent.onnx"))
    assert str(tmp_path) not in caught.value.message


def test_a_loop_that_ends_is_no_trouble(pool, tmp_path):
    assert inspect(pool, save(tmp_path, endless_above(1000.0))).n_classes == 10


def test_a_model_that_mixes_rows_is_refused(pool, tmp_path):
    # As a batch normalisation that was exported in training mode does.
    mixing = make_model(
        [
            node("ReduceMean", ["x"], ["mean"], axes=[0], keepdims=1),
            node("Sub", ["x", "mean"], ["centred"]),
            node("MatMul", ["centred", "w"], ["y"]),
        ],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", 10))],
        initializers=[constant("w", weights())],
    )
    with pytest.raises(InvalidOnnxModel, match="changes with the rows beside it"):
        inspect(pool, save(tmp_path, mixing))
