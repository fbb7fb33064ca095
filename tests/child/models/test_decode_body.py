"""Bodies of requests for predictions, as the child reads them: like ones by one layout."""

import json

import msgspec
import numpy as np
import pytest
from served_requests import infer_body

from service.child.onnx.model_inputs import ModelInputs
from service.child.requests.body_decoder import MOST_LAYOUTS, BodyDecoder
from service.child.requests.limits import BodyLimits
from service.errors import InvalidInput, MalformedRequest, ServiceError, TooLarge
from service.graph.description import TensorSpec
from service.runner.messages.predict_batches import SentBodies

LIMITS = BodyLimits(max_bytes=2**20, max_rows=10)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def decoder():
    return BodyDecoder(
        ModelInputs([TensorSpec("x", "float32", (None, None)), TensorSpec("n", "int64", (None,))])
    )


def sent(body, header_length, *, count=1):
    return SentBodies(1, "oip", len(body), "demo", header_length=header_length, count=count)


def read(reader, body, header_length, limits=LIMITS):
    return reader.decode(sent(body, header_length), memoryview(body), limits)


def body_of(x=ROWS, **options):
    return infer_body({"x": x, "n": np.arange(len(x))}, **options)


def test_bodies_of_the_same_layout_are_read_without_parsing_again():
    reader = decoder()
    first = read(reader, *body_of())
    assert first.is_checked
    again = read(reader, *body_of(x=ROWS + 1))
    assert not again.is_checked  # it was read by the layout
    np.testing.assert_array_equal(again.rows["x"], ROWS + 1)
    np.testing.assert_array_equal(again.rows["n"], [0, 1])
    assert (again.n_rows, again.wanted) == (first.n_rows, first.wanted)


def test_the_same_json_before_more_or_fewer_bytes_is_refused():
    reader = decoder()
    body, header_length = body_of()
    read(reader, body, header_length)
    for other in (body[:-1], body + b"\0", body[: int(header_length)], body + body):
        with pytest.raises(InvalidInput):
            read(reader, other, header_length)
    np.testing.assert_array_equal(read(reader, body, header_length).rows["x"], ROWS)


def test_fewer_rows_may_come_later_than_came_before():
    reader = decoder()
    body, header_length = body_of()
    read(reader, body, header_length)
    with pytest.raises(TooLarge):
        read(reader, body, header_length, BodyLimits(max_bytes=2**20, max_rows=1))


def test_numbers_in_the_json_are_not_read_from_the_bytes_after_it():
    reader = decoder()
    tensors = [
        {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": ROWS.tolist()},
        {"name": "n", "shape": [2], "datatype": "INT64", "parameters": {"binary_data_size": 16}},
    ]
    head = json.dumps({"inputs": tensors}).encode()
    behind = np.array([5, 6]).tobytes()
    for _ in range(2):
        found = read(reader, head + behind, str(len(head)))
        np.testing.assert_array_equal(found.rows["x"], ROWS)
        np.testing.assert_array_equal(found.rows["n"], [5, 6])
        with pytest.raises(InvalidInput, match="left over"):
            read(reader, head + behind + ROWS.tobytes(), str(len(head)))


def test_values_read_by_a_layout_are_checked():
    reader = decoder()
    read(reader, *body_of())
    found = read(reader, *body_of(x=np.full((2, 3), np.inf, np.float32)))
    with pytest.raises(InvalidInput, match=r"x\[0\]\[0\]"):
        reader.check(found.rows)


def test_numbers_with_overflowing_squares_are_accepted():
    reader = decoder()
    reader.check({"x": np.full((2, 3), 3e38, np.float32), "n": np.arange(2)})


def test_a_compressed_body_is_not_read_by_a_layout():
    reader = decoder()
    body, header_length = body_of()
    read(reader, body, header_length)
    one = sent(body, header_length)
    zipped = msgspec.structs.replace(one, encoding="gzip")
    with pytest.raises(MalformedRequest):
        reader.decode(zipped, memoryview(body), LIMITS)
    assert reader.decode_alike(zipped, body, max_rows=10, run_rows=100) is None
    assert reader.decode_alike(one, body, max_rows=10, run_rows=100) is not None


def test_only_the_latest_layouts_are_kept():
    reader = decoder()
    bodies = [body_of(id=str(n)) for n in range(MOST_LAYOUTS + 1)]
    for body in bodies:
        read(reader, *body)
    assert read(reader, *bodies[0]).is_checked
    assert not read(reader, *bodies[-1]).is_checked


def alike(reader, bodies, header_length, *, run_rows=100):
    one = sent(bodies[0], header_length, count=len(bodies))
    return reader.decode_alike(one, b"".join(bodies), max_rows=10, run_rows=run_rows)


def test_many_bodies_of_one_layout_are_read_together():
    reader = decoder()
    made = [body_of(x=ROWS + plus) for plus in range(5)]
    bodies, header_length = [body for body, _ in made], made[0][1]
    assert alike(reader, bodies, header_length) is None  # not known yet
    read(reader, bodies[0], header_length)
    found = alike(reader, bodies, header_length)
    np.testing.assert_array_equal(
        found.rows["x"], np.concatenate([ROWS + plus for plus in range(5)])
    )
    np.testing.assert_array_equal(found.rows["n"], [0, 1] * 5)
    assert found.n_rows == 2
    assert alike(reader, bodies, header_length, run_rows=9) is None
    other = body_of(id="two")[0]
    assert alike(reader, [*bodies, other], header_length) is None


@pytest.mark.parametrize("n_bytes", range(0, 200, 7))
def test_no_bytes_break_the_reader(n_bytes):
    reader = decoder()
    body, header_length = body_of()
    read(reader, body, header_length)
    damaged = bytearray(body)
    damaged[n_bytes % len(body)] ^= 0x5A
    for length in (header_length, "1", str(len(body))):
        try:
            read(reader, bytes(damaged), length)
        except ServiceError as error:
            assert error.message  # noqa: PT017 - reading may as well succeed
