"""How a child divides its runs among requests, and what one request may cost the others."""

import io

import numpy as np
import pytest
from asked_queue import AskedQueue, load_here
from batch_requests import infer_body, json_body
from graph_models import constant, make_model, node, passthrough, value
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from runner_models import N_FEATURES, linear, rows, save, softmax_of_two, undefined_below_zero
from runner_models import weights as random_weights

from service.child.requests.media_types import JSON, NPZ
from service.errors import InvalidInput, MalformedRequest, TooLarge

TRIAL = rows(20)


def of_any_length():
    """Takes the mean of any number of vectors a row."""
    return make_model(
        [
            node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0),
            node("MatMul", ["m", "w"], ["y"]),
        ],
        inputs=[value("x", ("N", "T", N_FEATURES))],
        outputs=[value("y", ("N", 10))],
        initializers=[constant("w", random_weights())],
    )


def picky():
    """Fails as a whole where a row's first feature is no index of the table."""
    return make_model(
        [
            node("Gather", ["x", "first"], ["a"], axis=1),
            node("Cast", ["a"], ["index"], to=TensorProto.INT64),
            node("Gather", ["table", "index"], ["b"], axis=0),
            node("MatMul", ["x", "w"], ["z"]),
            node("Add", ["z", "b"], ["y"]),
        ],
        inputs=[value("x", ("N", N_FEATURES))],
        outputs=[value("y", ("N", 10))],
        initializers=[
            constant("w", random_weights()),
            constant("first", 0, np.int64),
            constant("table", np.zeros((100, 10))),
        ],
    )


@pytest.fixture(scope="module", params=[None, ("entropy", "neg_log_topk_mass_5")])
def loaded(tmp_path_factory, request):
    """Loads models once for the tests of this file: with all uncertainties, and with some."""
    folder, kept = tmp_path_factory.mktemp("models"), {}

    def load(make, trial):
        if make not in kept:
            name = f"{make.__name__}.onnx"
            matrix = (
                () if make in {of_any_length, picky, linear, passthrough} else (random_weights(),)
            )
            kept[make] = load_here(
                save(folder, make(*matrix), name=name), trial, columns=request.param
            )
        return kept[make]

    return load


def alone(model, array, name="x"):
    """Return the answers to rows, each of which is asked alone."""
    return [model.answer({name: row[None]}, location="inputs", start=0) for row in array]


def assert_same(outputs, answers):
    """Compare rows of a batch with the same rows asked alone."""
    assert len(outputs.top_classes) == len(answers)
    for row, answer in enumerate(answers):
        np.testing.assert_array_equal(outputs.top_classes[row], answer["howsure_top_classes"][0])
        np.testing.assert_allclose(
            outputs.top_scores[row], answer["howsure_top_scores"][0], rtol=1e-5, atol=1e-7
        )
        for name, column in outputs.uncertainty.items():
            expected = answer[f"howsure_{name}"][0]
            np.testing.assert_allclose(column[row], expected, rtol=1e-4, atol=1e-6)


@given(data=st.data())
def test_rows_of_any_sizes_come_back_whole_and_once(loaded, data):
    model = loaded(of_any_length, {"x": TRIAL[:, None]})
    run_rows = data.draw(st.integers(1, 12))
    queue = AskedQueue(model, run_rows=run_rows)
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    sent, dropped = {}, set()
    for _ in range(data.draw(st.integers(1, 4))):
        shapes = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 2)), max_size=5)
        for n_rows, length in data.draw(shapes):
            array = generator.normal(size=(n_rows, length, N_FEATURES)).astype(np.float32)
            sent[queue.put_rows(x=array)] = array
        gone = data.draw(st.sets(st.sampled_from(sorted(queue.sent)))) if queue.sent else set()
        dropped |= gone
        queue.exchange(sorted(gone))
    queue.all()
    assert max(queue.runs) <= run_rows
    assert not queue.refusals
    assert queue.answers.keys() == sent.keys() - (dropped - queue.answers.keys())
    assert not queue.answers.keys() & dropped
    for number, outputs in queue.answers.items():
        assert_same(outputs, alone(model, sent[number]))


def test_a_small_request_passes_beside_a_large_one(loaded):
    queue = AskedQueue(loaded(linear, {"x": TRIAL}))
    large = queue.put_rows(x=rows(100))
    assert queue.exchange() == set()
    small = [queue.put_rows(x=rows(2)) for _ in range(2)]
    assert queue.exchange() == set(small)
    while large in queue.sent:
        small = queue.put_rows(x=rows(1))
        assert small in queue.exchange()
    assert len(queue.answers[large].top_classes) == 100
    # No run was left half empty.
    assert queue.runs[:-1] == [8] * (len(queue.runs) - 1)


def test_other_shapes_take_turns_and_do_not_mix(loaded):
    queue = AskedQueue(loaded(of_any_length, {"x": TRIAL[:, None]}))
    large = queue.put_rows(x=np.ones((100, 1, N_FEATURES), np.float32))
    queue.exchange()
    other = queue.put_rows(x=np.ones((3, 2, N_FEATURES), np.float32))
    assert [queue.exchange(), queue.exchange()] == [set(), {other}]
    assert large in queue.sent
    assert queue.all().keys() == {large, other}


def test_more_requests_than_rows_of_a_run_are_answered_in_their_order(loaded):
    queue = AskedQueue(loaded(linear, {"x": TRIAL}), run_rows=4)
    numbers = [queue.put_rows(x=rows(2)) for _ in range(10)]
    done = []
    while queue.sent or not done:
        done += sorted(queue.exchange())
    assert done == numbers


def test_what_is_dropped_is_not_run(loaded):
    queue = AskedQueue(loaded(linear, {"x": TRIAL}))
    large = queue.put_rows(x=rows(1000))
    queue.exchange()
    assert queue.exchange([large]) == set()
    assert queue.runs == [8, 0]


@pytest.mark.parametrize("n_bad", [1, 3, 7])
def test_rows_that_stop_a_run_fail_nobody_beside_them(loaded, n_bad):
    model = loaded(picky, {"x": np.abs(TRIAL)})
    queue = AskedQueue(model, run_rows=64)
    good = np.abs(rows(5))
    bad = good.copy()
    bad[3, 0] = 1e6
    numbers = [queue.put_rows(x=bad if n < n_bad else good) for n in range(8)]
    queue.exchange()
    assert queue.answers.keys() == set(numbers[n_bad:])
    assert queue.refusals.keys() == set(numbers[:n_bad])
    for error in queue.refusals.values():
        assert "Gather node failed" in error.message
    for outputs in queue.answers.values():
        assert_same(outputs, alone(model, good))


def test_rows_without_an_answer_fail_nobody_beside_them_and_are_named(loaded):
    model = loaded(undefined_below_zero, {"x": np.abs(TRIAL)})
    queue = AskedQueue(model, run_rows=64)
    good = np.abs(rows(40))
    bad = good.copy()
    bad[33, 0] = -1
    numbers = [queue.put_rows(x=good[:3]), queue.put_rows(x=bad), queue.put_rows(x=good)]
    answers = queue.all()
    assert answers.keys() == {numbers[0], numbers[2]}
    assert_same(answers[numbers[2]], alone(model, good))
    error = queue.refusals[numbers[1]]
    assert type(error) is InvalidInput
    assert error.violations[0].location == "inputs[33]"
    # Nothing was run twice: 3 rows, the bad 40 and 21 of the last, then what is left of those.
    assert queue.runs == [24, 19]


@pytest.mark.parametrize("n_known", [0, 1])
@pytest.mark.parametrize(("n_rows", "bad_row"), [(3, 2), (20, 17), (200, 170)])
def test_numbers_that_are_none_fail_nobody_beside_them_and_are_named(
    loaded, n_rows, bad_row, n_known
):
    model = loaded(linear, {"x": TRIAL})
    queue = AskedQueue(model)
    for _ in range(n_known):  # the same JSON before other bytes is read another way
        queue.put_rows(x=rows(n_rows))
        queue.all()
    bad = rows(n_rows)
    bad[bad_row, 4] = np.nan
    good, wrong = queue.put_rows(x=rows(n_rows)), queue.put_rows(x=bad)
    queue.all()
    assert queue.refusals.keys() == {wrong}
    assert queue.refusals[wrong].violations[0].location == f"inputs[{bad_row}][4]"
    assert_same(queue.answers[good], alone(model, rows(n_rows)))


def test_more_classes_than_were_calibrated_are_an_error_of_who_asked(loaded):
    queue = AskedQueue(loaded(passthrough, {"x": TRIAL}), run_rows=64)
    wide = np.arange(40, dtype=np.float32).reshape(2, 20)
    wrong, good = queue.put_rows(x=wide), queue.put_rows(x=rows(2))
    queue.all()
    assert queue.answers.keys() == {good}
    assert "more than the 6 classes" in queue.refusals[wrong].message


def test_inputs_in_another_order_go_together(loaded):
    model = loaded(softmax_of_two, {"left": TRIAL, "right": TRIAL})
    queue = AskedQueue(model, run_rows=64)
    for _ in range(2):
        one = queue.put_rows(left=rows(3, seed=1), right=rows(3, seed=2))
        other = queue.put_rows(right=rows(3, seed=2), left=rows(3, seed=1))
        assert queue.exchange() == {one, other}
        np.testing.assert_array_equal(
            queue.answers[one].top_scores, queue.answers[other].top_scores
        )
    assert queue.runs == [6, 6]


def test_a_model_of_a_fixed_batch_answers_each_request(tmp_path):
    model = load_here(save(tmp_path, linear(batch=4)), {"x": TRIAL})
    queue = AskedQueue(model)
    numbers = [queue.put_rows(x=rows(n)) for n in (1, 3, 9, 2)]
    queue.all()
    for number, n_rows in zip(numbers, (1, 3, 9, 2), strict=True):
        assert_same(queue.answers[number], alone(model, rows(n_rows)))


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


BAD_BODIES = [
    (b"{", JSON, MalformedRequest, "body"),
    (b"", JSON, MalformedRequest, "body"),
    (json_body(rows(1), calibration="another"), JSON, InvalidInput, "one name"),
    (json_body(rows(1)[:, :2]), JSON, InvalidInput, "shape"),
    (json_body(rows(2), supplied={"own": [1.0]}), JSON, InvalidInput, "expected 2 numbers"),
    (json_body(rows(1), supplied={"own": [[1.0]]}), JSON, InvalidInput, "expected 1 numbers"),
    (
        b'{"calibration": "demo", "inputs": [[1, 2, 3, 4, 5, 6]], "calibration": "another"}',
        JSON,
        InvalidInput,
        "one name",
    ),
    (b"PK\x03\x04" * 9, NPZ, InvalidInput, ""),
    (npz(y=rows(1)), NPZ, InvalidInput, "no such input"),
    (npz(inputs=rows(1001)), NPZ, TooLarge, "1000 rows"),
    (b"\xff" * 10_000, "oip", MalformedRequest, ""),
]


@pytest.mark.parametrize(("body", "media_type", "kind", "words"), BAD_BODIES)
def test_a_body_that_is_none_fails_nobody_beside_it(loaded, body, media_type, kind, words):
    queue = AskedQueue(loaded(linear, {"x": TRIAL}))
    numbers = [queue.put_rows(x=rows(1)), queue.put(body, media_type), queue.put_rows(x=rows(2))]
    queue.all()
    assert queue.answers.keys() == {numbers[0], numbers[2]}
    assert isinstance(queue.refusals[numbers[1]], kind)
    assert words in queue.refusals[numbers[1]].message


@pytest.mark.parametrize("length", ["0", "7", "-1", "1e3", "999999", "9" * 400, "", " 5", "٣"])
def test_a_length_that_lies_fails_nobody_beside_it(loaded, length):
    queue = AskedQueue(loaded(linear, {"x": TRIAL}))
    body, _ = infer_body({"x": rows(1)})
    good = [queue.put_rows(x=rows(1)) for _ in range(2)]
    wrong = queue.put(body, "oip", header_length=length)
    queue.all()
    assert queue.answers.keys() == set(good)
    assert isinstance(queue.refusals[wrong], InvalidInput)


def test_supplied_uncertainties_come_back_as_they_were_sent(loaded):
    model = loaded(linear, {"x": TRIAL})
    queue = AskedQueue(model, run_rows=4)
    number = queue.put(json_body(rows(9), supplied={"own": list(range(9))}), JSON)
    request = queue._new[0]
    queue.all()
    column = request.head.supplied["own"]
    np.testing.assert_array_equal(np.frombuffer(column.data, column.dtype), np.arange(9))
    assert_same(queue.answers[number], alone(model, rows(9)))
