"""Files that are no ONNX models, and ONNX models that are hostile as files."""

import io
import zipfile

import httpx
import pytest
from hostile_models import ACCEPTED, ModelCase, assert_told, delimited, good

GRAPH, NODE, PRODUCER = 7, 1, 2


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.onnx", good().SerializeToString())
    return file.getvalue()


def renamed(old, new):
    return lambda: good().SerializeToString().replace(old, new)


def with_field(message):
    """Return a good file with one more field in its graph."""
    return good().SerializeToString() + delimited(GRAPH, message)


def with_remark(key, text):
    model = good()
    model.metadata_props.add(key=key, value=text)
    return model


CASES = [
    ModelCase("empty_file", lambda: b"", "not-onnx", says="empty"),
    ModelCase("zip_of_a_model", zipped, "not-onnx", says="zip archive"),
    ModelCase("length_beyond_the_end", lambda: b"\x08\x08\x3a\xff\xff\xff\xff\x0f", "not-onnx"),
    ModelCase("ort_format", lambda: b"\x18\0\0\0ORTM" + bytes(999), "ort-format", says=".onnx"),
    ModelCase("name_that_is_no_text", renamed(b"\x0a\x01x", b"\x0a\x01\xff"), "not-text"),
    ModelCase(
        "above_the_size_limit",
        lambda: with_field(delimited(10, bytes(9 * 1024**2))),
        status=httpx.codes.REQUEST_ENTITY_TOO_LARGE,
        code="too-large",
    ),
    ModelCase(
        "three_megabytes_of_empty_nodes",
        lambda: with_field(delimited(NODE, b"") * 1_500_000),
        "too-many-parts",
    ),
    # Written anew, the name stands where a file of ONNX Runtime's own format says what it is.
    ModelCase(
        "a_producer_called_ortm",
        lambda: good().SerializeToString() + delimited(PRODUCER, b"ORTM"),
        **ACCEPTED,
    ),
    ModelCase(
        "settings_in_the_file",
        lambda: with_remark("ort_config", '{"session_options": {"intra_op_num_threads": "no"}}'),
        **ACCEPTED,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_broken_rule_is_named(hostile, case: ModelCase) -> None:
    assert_told(hostile, case)
