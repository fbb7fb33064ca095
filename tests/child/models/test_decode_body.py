"""Bodies of requests for predictions, as the child reads them: like ones by one layout."""

import json
from contextlib import suppress

import numpy as np
import pytest
from request_formats import in_bytes, in_json
from served_requests import infer_body

from service.child.onnx.model_inputs import ModelInputs
from service.child.requests.body_decoder import MOST_LAYOUTS, BodyDecoder
from service.child.requests.limits import BodyLimits
from service.errors import InvalidInput, ServiceError, TooLarge
from service.graph.description import TensorSpec
from service.runner.messages.predict_batches import SentBodies

LIMITS = BodyLimits(max_bytes=2**20, max_rows=10)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def decoder():
    specs = [TensorSpec("x", "float32", (None, None)), TensorSpec("n", "int64", (None,))]
    return BodyDecoder(ModelInputs(specs))


def sent(body, header_length, *, count=1):
    return SentBodies(1, "oip", len(body), "demo", header_length=header_length, count=count)


def read(decoder, body, header_length, limits=LIMITS):
    return decoder.decode(sent(body, header_length), memoryview(body), limits)


def body_of(x=ROWS, **options):
    return infer_body({"x": x, "n": np.arange(len(x))}, **options)


def test_bodies_of_the_same_layout_are_read_without_parsing_again(decoder):
    first = read(decoder, *body_of())
    again = read(decoder, *body_of(x=ROWS + 1))
    np.testing.assert_array_equal(again.rows["x"], ROWS + 1)
    np.testing.assert_array_equal(again.rows["n"], [0, 1])
    assert again.n_rows == first.n_rows
    assert again.wanted is first.wanted  # that of the layout
    with pytest.raises(InvalidInput) as refused:
        read(decoder, *body_of(x=np.full((2, 3), np.inf, np.float32)))
    assert refused.value.violations[0].location == "inputs.x[0][0]"
    # The squares of these overflow.
    read(decoder, *body_of(x=np.full((2, 3), 3e38, np.float32)))


def test_rows_of_a_large_body_are_views_where_they_are_aligned(decoder):
    wide = np.random.default_rng(0).random((2, 10_000), dtype=np.float32)
    n_views = 0
    for length in range(16):
        body, header_length = body_of(wide, id="i" * (length + 1))
        read(decoder, body, header_length)
        decoded = read(decoder, body, header_length)
        np.testing.assert_array_equal(decoded.rows["x"], wide)
        assert decoded.rows["x"].ctypes.data % 16 == 0
        n_views += np.shares_memory(decoded.rows["x"], np.frombuffer(body, np.uint8))
    assert n_views == 1


def test_large_inputs_come_with_their_extents_and_are_refused_where_not_finite():
    wide = np.random.default_rng(0).random((2, 2**18), dtype=np.float32)
    decoder = BodyDecoder(ModelInputs([TensorSpec("x", "float32", (None, None))]), ranged=["x"])
    for array, has_extents in ((wide, True), (wide[:, :9], False), (wide.astype("f8"), False)):
        for _ in range(2):  # the second time by the layout
            decoded = read(decoder, *infer_body({"x": array}))
            assert (decoded.extents.keys() == {"x"}) == has_extents
    np.testing.assert_array_equal(
        read(decoder, *infer_body({"x": wide})).extents["x"], [wide.min(axis=1), wide.max(axis=1)]
    )
    for bad in (np.nan, np.inf):
        wide[1, 77] = bad
        with pytest.raises(InvalidInput) as refused:
            read(decoder, *infer_body({"x": wide}))
        assert refused.value.violations[0].location == "inputs[1][77]"


def test_the_same_json_before_more_or_fewer_bytes_or_with_fewer_rows_is_refused(decoder):
    body, header_length = body_of()
    read(decoder, body, header_length)
    for other in (body[:-1], body + b"\0", body[: int(header_length)], body + body):
        with pytest.raises(InvalidInput):
            read(decoder, other, header_length)
    with pytest.raises(TooLarge):
        read(decoder, body, header_length, BodyLimits(max_bytes=2**20, max_rows=1))
    np.testing.assert_array_equal(read(decoder, body, header_length).rows["x"], ROWS)


def test_numbers_in_the_json_are_not_read_from_the_bytes_after_it(decoder):
    tensors = [in_json("x", ROWS), in_bytes("n", np.array([5, 6]), "INT64")]
    head = json.dumps({"inputs": tensors}).encode()
    body = head + np.array([5, 6]).tobytes()
    for _ in range(2):
        decoded = read(decoder, body, str(len(head)))
        np.testing.assert_array_equal(decoded.rows["x"], ROWS)
        np.testing.assert_array_equal(decoded.rows["n"], [5, 6])
        with pytest.raises(InvalidInput, match="left over"):
            read(decoder, body + ROWS.tobytes(), str(len(head)))


def test_only_the_latest_layouts_are_kept(decoder):
    bodies = [body_of(id=str(n)) for n in range(MOST_LAYOUTS + 1)]
    wanted = [read(decoder, *body).wanted for body in bodies]
    assert read(decoder, *bodies[-1]).wanted is wanted[-1]
    assert read(decoder, *bodies[0]).wanted is not wanted[0]


def test_many_bodies_of_one_layout_are_read_together(decoder):
    def alike(bodies, *, run_rows=100):
        one = sent(bodies[0], header_length, count=len(bodies))
        return decoder.decode_alike(one, b"".join(bodies), max_rows=10, run_rows=run_rows)

    bodies = [body_of(x=ROWS + plus)[0] for plus in range(5)]
    header_length = body_of()[1]
    assert alike(bodies) is None  # not known yet
    read(decoder, bodies[0], header_length)
    decoded = alike(bodies)
    np.testing.assert_array_equal(decoded.rows["x"], np.vstack([ROWS + k for k in range(5)]))
    np.testing.assert_array_equal(decoded.rows["n"], [0, 1] * 5)
    assert decoded.n_rows == 2
    assert alike(bodies, run_rows=9) is None
    assert alike([*bodies, body_of(id="two")[0]]) is None


def test_no_bytes_break_the_reader(decoder):
    body, header_length = body_of()
    read(decoder, body, header_length)
    for at in range(0, len(body), 7):
        damaged = bytearray(body)
        damaged[at] ^= 0x5A
        for length in (header_length, "1", str(len(body))):
            with suppress(ServiceError):  # reading may as well succeed
                read(decoder, bytes(damaged), length)
