"""Requests to models that are served in real children: together, in time, and each for itself."""

import asyncio
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from batch_requests import ChangedLimits, Futures, json_body, outcome, outcomes, until
from graph_models import constant, make_model, node, value
from models_at_work import Resolving, assert_alike, at_work, run_loop
from runner_children import is_gone, processor_ticks, wait_until
from runner_models import N_FEATURES, endless_above, linear, rows, save, weights

from service.child.requests.media_types import JSON
from service.errors import DeadlineExceeded, InvalidInput, OnnxModelCrashed
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles, serving
from service.runner.messages.passes import PassPlan
from service.runner.model_to_serve import ModelToServe

PASSES = Path(__file__).parents[1] / "data" / "passes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(pool, folder):
    return Resolving(pool)(save(folder, linear(), name="linear.onnx"), "linear")


@pytest.fixture(scope="module")
def endless(pool, folder):
    files = save(folder, endless_above(1000.0), name="endless.onnx")
    return Resolving(pool)(files, "endless")


@pytest.fixture(scope="module")
def of_any_length(pool, folder):
    graph = make_model(
        [
            node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0),
            node("MatMul", ["m", "w"], ["y"]),
        ],
        inputs=[value("x", ("N", "T", N_FEATURES))],
        outputs=[value("y", ("N", 10))],
        initializers=[constant("w", weights())],
    )
    files = save(folder, graph, name="any_length.onnx")
    return Resolving(pool)(files, "any length", trial=rows(20)[:, None])


def test_a_small_answer_comes_before_a_large_one_is_complete(pool, model):
    async def body():
        async with at_work(pool) as work:
            large = work.ask(model, rows(1000))
            await until(work.models.running)
            small = [work.ask(model, rows(3, seed=n)) for n in range(5)]
            found = await outcomes(small)
            whole = await outcome(large)
            assert max(answer.order for answer in found) < whole.order
            assert_alike(
                whole.outputs, pool.predict(model.files, model.resolved, {"x": rows(1000)})
            )
            for n, answer in enumerate(found):
                expected = pool.predict(model.files, model.resolved, {"x": rows(3, seed=n)})
                assert_alike(answer.outputs, expected)

    run_loop(body)


def test_requests_of_all_shapes_are_answered_at_once(pool, of_any_length):
    generator = np.random.default_rng(0)

    async def body():
        async with at_work(pool) as work:
            arrays = [
                generator.normal(size=(1 + n % 11, 1 + n % 3, N_FEATURES)).astype(np.float32)
                for n in range(40)
            ]
            requests = [work.ask(of_any_length, array) for array in arrays]
            for answer, array in zip(await outcomes(requests), arrays, strict=True):
                expected = pool.predict(of_any_length.files, of_any_length.resolved, {"x": array})
                assert_alike(answer.outputs, expected)

    run_loop(body)


def test_a_body_larger_than_the_socket_holds_arrives(pool, of_any_length):
    array = np.random.default_rng(0).normal(size=(50, 2000, N_FEATURES)).astype(np.float32)

    async def body():
        async with at_work(pool) as work:
            requests = [work.ask(of_any_length, array[:n]) for n in (50, 1, 49)]
            expected = pool.predict(of_any_length.files, of_any_length.resolved, {"x": array})
            for answer in await outcomes(requests):
                assert_alike(answer.outputs, expected)

    run_loop(body)


def test_bad_requests_are_told_and_the_others_answered(pool, model):
    async def body():
        async with at_work(pool) as work:
            bad = rows(2)
            bad[1, 1] = np.nan
            other_name = work.asker.request(json_body(rows(1), calibration="other"), JSON)
            other_length = work.asker.request(b"{}" * 50, "oip", header_length="2")
            good = [work.ask(model) for _ in range(5)]
            wrong = work.ask(model, bad)
            for request in (other_name, other_length):
                work.put(model, request)
            good += [work.ask(model) for _ in range(5)]
            assert {answer.outputs.top_classes.shape for answer in await outcomes(good)} == {(1, 5)}
            for error in await outcomes([wrong, other_name, other_length]):
                assert isinstance(error, InvalidInput)
            assert work.state(model).status == "loaded"

    run_loop(body)


@pytest.mark.parametrize(
    ("name", "members", "plan"),
    [
        ("hidden_dropout_cnn", (), PassPlan("dropout_variance", passes=5, seed=0)),
        ("member_0", ("member_1", "member_2"), PassPlan("ensemble_variance", passes=5, seed=0)),
    ],
)
def test_models_of_several_passes_answer_as_alone(pool, name, members, plan):
    x = np.load(PASSES / "digits_passes.npz")["evaluation_inputs"][:20]
    files = OnnxModelFiles(
        PASSES / f"{name}.onnx",
        members=tuple(OnnxMember(PASSES / f"{member}.onnx") for member in members),
    )
    found = pool.inspect(files, top_k=(1, 5), passes=[plan], trial={"inputs": x})
    resolved = serving(found.resolved, [plan.measure], ["entropy"])
    input_name = found.description.inputs[0].name

    async def body():
        async with at_work(pool) as work:
            model = ModelToServe(files, resolved, name)
            parts = [slice(0, 1), slice(1, 4), slice(4, 20)]
            requests = [work.ask(model, x[part], name=input_name) for part in parts]
            answers = await outcomes(requests)
            for part, answer in zip(parts, answers, strict=True):
                expected = pool.predict(files, resolved, {"inputs": x[part]})
                np.testing.assert_array_equal(answer.outputs.top_classes, expected.top_classes)
                np.testing.assert_allclose(
                    answer.outputs.uncertainty[plan.measure],
                    expected.uncertainty[plan.measure],
                    rtol=2e-3,
                    atol=1e-9,
                )

    run_loop(body)


def test_who_waits_too_long_is_told_before_the_run(pool, endless):
    async def body():
        async with at_work(pool) as work:
            work.ask(endless, rows(1) + 2000)
            await until(work.models.running)
            waiting = [work.ask(endless, timeout=0.1) for _ in range(3)]
            for error in await outcomes(waiting):
                assert isinstance(error, DeadlineExceeded)
                assert "waited" in error.message
            with pytest.raises(DeadlineExceeded):
                work.ask(endless, timeout=0.0)
            assert work.models.pending() == 0

    run_loop(body)


def test_who_runs_too_long_is_told_and_costs_those_beside_it_their_run_alone(pool, endless):
    async def body():
        limits = ChangedLimits()
        async with at_work(pool, limits=limits) as work:
            await outcome(work.ask(endless))
            with limits.impatient(0.3):
                long = work.ask(endless, rows(1) + 2000)
                await until(work.models.running)
            waiting = [work.ask(endless) for _ in range(3)]
            assert isinstance(await outcome(long), DeadlineExceeded)
            for answer in await outcomes(waiting):
                assert answer.outputs.top_classes.shape == (1, 5)

    run_loop(body)


def test_a_request_that_runs_longer_than_it_may_is_dropped_from_its_child(pool, endless):
    async def body():
        limits = ChangedLimits()
        async with at_work(pool, limits=limits) as work:
            await outcome(work.ask(endless))
            with limits.impatient(0.5):
                asked = work.ask(endless, rows(1) + 2000, timeout=0.2)
                await until(work.models.running)
            error = await outcome(asked)
            assert "ran for longer" in error.message
            assert (await outcome(work.ask(endless))).order

    run_loop(body)


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_killed_child_costs_what_it_was_on_and_nothing_else(pool, endless, is_busy):
    async def body():
        async with at_work(pool) as work:
            await outcome(work.ask(endless))
            pid = work.state(endless).pid
            if is_busy:
                ticks = processor_ticks(pid)
                running = work.ask(endless, rows(1) + 2000)
                # What it has not read yet is no reason to fail.
                await until(lambda: processor_ticks(pid) > ticks + 10)
            os.kill(pid, signal.SIGKILL)
            assert wait_until(lambda: is_gone(pid))  # the loop does not hear of it
            waiting = [work.ask(endless) for _ in range(3)]
            for answer in await outcomes(waiting):
                assert answer.outputs.top_classes.shape == (1, 5)
            if is_busy:
                error = await outcome(running)
                assert isinstance(error, OnnxModelCrashed)
                assert "SIGKILL" in error.message
            assert work.state(endless).pid != pid

    run_loop(body)


def test_what_a_child_had_not_read_when_it_died_is_asked_of_the_next(pool, model):
    async def body():
        async with at_work(pool) as work:
            await outcome(work.ask(model))
            pid = work.state(model).pid
            os.kill(pid, signal.SIGSTOP)
            unread = [work.ask(model, rows(9)) for _ in range(3)]
            await until(work.models.running)
            work.drop(unread.pop())
            behind = work.ask(model, rows(9))
            os.kill(pid, signal.SIGKILL)
            for answer in await outcomes([*unread, behind]):
                assert answer.outputs.top_classes.shape == (9, 5)
            assert work.state(model).pid != pid
            assert (work.bounds._rows, work.bounds._bytes) == (0, 0)

    run_loop(body)


def test_a_stopped_child_is_killed_after_its_time(pool, model):
    async def body():
        limits = ChangedLimits()
        async with at_work(pool, limits=limits) as work:
            await outcome(work.ask(model))
            pid = work.state(model).pid
            os.kill(pid, signal.SIGSTOP)
            with limits.impatient(0.3):
                error = await outcome(work.ask(model))
            assert isinstance(error, DeadlineExceeded)
            await until(lambda: is_gone(pid))
            assert (await outcome(work.ask(model))).order

    run_loop(body)


def test_requests_may_be_dropped_in_any_state(pool, model):
    generator = np.random.default_rng(0)

    async def body():
        async with at_work(pool) as work:
            kept, dropped = [], []
            for n in range(100):
                request = work.ask(model, rows(int(generator.integers(1, 40)), seed=n))
                (kept if n % 2 else dropped).append(request)
                if n == 40:
                    await outcome(kept[0])
                if n > 20 and generator.random() < 0.5:
                    await asyncio.sleep(generator.random() / 200)
                for gone in generator.choice(len(dropped), size=2):
                    if not dropped[gone].answered.done():
                        work.drop(dropped[gone])
                        dropped[gone].answered.cancel()
            for request in dropped:
                if not request.answered.done():
                    work.drop(request)
                    request.answered.cancel()
            for answer in await outcomes(kept):
                assert len(answer.outputs.top_classes)
            await until(lambda: not work.models.running())
            assert work.models.pending() == 0
            assert (work.bounds._rows, work.bounds._bytes) == (0, 0)

    run_loop(body)


def test_dropped_while_it_loads_a_model_answers_the_next(pool, model):
    async def body():
        async with at_work(pool) as work:
            request = work.ask(model)
            work.drop(request)
            await until(lambda: work.loaded() == ["linear"])
            assert (await outcome(work.ask(model))).order == 1

    run_loop(body)


def test_supplied_uncertainties_come_back_with_the_answer(pool, model):
    async def body():
        async with at_work(pool) as work:
            request = work.asker.request(
                json_body(rows(20), supplied={"own": list(range(20))}), JSON, n_rows=20
            )
            work.put(model, request)
            answer = await outcome(request)
            own = answer.supplied["own"]
            np.testing.assert_array_equal(np.frombuffer(own.data, own.dtype), np.arange(20))
            assert len(answer.outputs.top_classes) == 20

    run_loop(body)


def test_many_supplied_at_once_are_no_reason_to_end_a_child(pool, model):
    """Their numbers take more bytes than they were written in."""

    async def body():
        async with at_work(pool) as work:
            await outcome(work.ask(model))
            pid = work.state(model).pid
            supplied = {str(n): [1] * 900 for n in range(200)}
            data = json_body(rows(900), supplied=supplied).replace(b" ", b"")
            requests = [work.asker.request(data, JSON, n_rows=900) for _ in range(8)]
            for request in requests:
                work.put(model, request)
            for answer in await outcomes(requests):
                assert len(answer.supplied) == 200
            assert work.state(model).pid == pid

    run_loop(body)


def test_an_asker_is_told_what_one_run_answered_at_once(pool, model):
    class Together(Futures):
        calls = 0

        def answered(self, answers):
            self.calls += 1
            super().answered(answers)

    async def body():
        async with at_work(pool) as work:
            work.asker = Together()
            await outcome(work.ask(model))
            requests = [work.ask(model) for _ in range(8)]
            await outcomes(requests)
            assert work.asker.calls == 2

    run_loop(body)
