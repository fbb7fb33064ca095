"""A model answers on a GPU as on the CPU."""

import numpy as np
import pytest
from classifier_files import FILES
from model_services import labelled_sets
from onnx import TensorProto
from runner_models import assert_same_classes, digits_model, linear, rows, save, weights

from howsure.bins_document.pass_plan import PassPlan
from service.runner.messages.onnx_models import OnnxModelFiles

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

TOP_K = (1, 5)
PLANS = {
    "hidden_dropout_cnn": PassPlan("dropout_variance", passes=20, seed=0),
    "last_layer_dropout_cnn": PassPlan("last_layer_dropout_variance", passes=20, seed=0),
    "member_0": PassPlan("ensemble_variance", passes=20, seed=0),
    "small_cnn": PassPlan("gradient_norm", passes=16, seed=0, step=1e-3),
}


def answers(pool, files, feeds, said=None, passes=()):
    trial = {name: array[:100] for name, array in feeds.items()}
    options = {f"output_{key}": value for key, value in (said or {}).items()}
    loaded = pool.inspect(files, trial, top_k=TOP_K, passes=passes, **options)
    assert loaded.provider == pool.device().provider
    return loaded.resolved, pool.predict(files, loaded.resolved, feeds)


def stored(found, folder):
    """Write a file and those that lie beside it."""
    companions = {name: folder / f"companion_{n}" for n, name in enumerate(found.companions)}
    for name, path in companions.items():
        path.write_bytes(found.companions[name])
    return OnnxModelFiles(save(folder, found.data).path, companions=companions)


@pytest.mark.parametrize("name", list(FILES))
def test_classifiers_as_libraries_write_them(pool, cpu_pool, tmp_path, name):
    found = FILES[name]()
    files, feeds = stored(found, tmp_path), found.draw(300)
    expected_resolved, expected = answers(cpu_pool, files, feeds, found.said)
    resolved, got = answers(pool, files, feeds, found.said)
    assert resolved == expected_resolved
    relative = 3e-2 if name.startswith("float16") else 1e-3
    scores = expected.top_scores
    assert_same_classes(got.top_classes, expected.top_classes, scores, gap=2 * relative)
    assert got.uncertainty.keys() == expected.uncertainty.keys()
    pairs = {column: (got.uncertainty[column], v) for column, v in expected.uncertainty.items()}
    for column, (values, of_cpu) in {"scores": (got.top_scores, scores), **pairs}.items():
        np.testing.assert_allclose(values, of_cpu, rtol=relative, atol=1e-6, err_msg=column)


def test_half_precision_is_as_near_to_float64_as_its_digits_allow(pool, tmp_path):
    matrix = weights()
    model = linear(matrix, element_type=TensorProto.FLOAT16, dtype=np.float16)
    x = rows(300).astype(np.float16)
    got = answers(pool, save(tmp_path, model), {"x": x})[1]
    logits = x.astype(np.float64) @ matrix.astype(np.float16).astype(np.float64)
    z = np.sort(logits, axis=1)[:, ::-1]
    expected = np.log1p(np.exp(z[:, 1:] - z[:, :1]).sum(axis=1))
    # Each logit is rounded to 11 bits of at most 32; two of them differ by twice that.
    assert np.abs(logits).max() < 32
    np.testing.assert_allclose(got.uncertainty["neg_log_pmax"], expected, rtol=2 * 32 * 2**-11)


@pytest.mark.parametrize("name", list(PLANS))
def test_measures_of_several_runs(pool, cpu_pool, name):
    plan = PLANS[name]
    of_several = plan.measure == "ensemble_variance"
    files = digits_model(name, *(("member_1", "member_2") if of_several else ()))
    feeds = {"inputs": labelled_sets()["evaluation_inputs"][:300]}
    expected = answers(cpu_pool, files, feeds, passes=(plan,))[1].uncertainty[plan.measure]
    got = answers(pool, files, feeds, passes=(plan,))[1].uncertainty[plan.measure]
    assert (expected > 0).any()
    np.testing.assert_allclose(got, expected, rtol=2e-2, atol=1e-4 * expected.max())
