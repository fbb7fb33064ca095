"""Why an ONNX model is refused: a stable name for each rule, ``rule`` in a problem's ``errors``.

What each asks for, and what to change, is in docs/model-gate.md, complete by test.
"""

from enum import StrEnum


class ModelRule(StrEnum):
    """One rule that a model has to keep."""

    # The file.
    NOT_ONNX = "not-onnx"
    ORT_FORMAT = "ort-format"
    NOT_TEXT = "not-text"
    TOO_MANY_PARTS = "too-many-parts"
    TOO_DEEP = "too-deep"
    FILE_TOO_LARGE = "file-too-large"
    # Its versions.
    IR_TOO_NEW = "ir-too-new"
    OPSET_TOO_NEW = "opset-too-new"
    OPSET_TOO_OLD = "opset-too-old"
    # Its nodes and functions.
    NAME_TWICE = "name-twice"
    OPERATOR_NOT_ALLOWED = "operator-not-allowed"
    TOO_MANY_NODES = "too-many-nodes"
    FUNCTION_TWICE = "function-twice"
    FUNCTION_CALLS_ITSELF = "function-calls-itself"
    FUNCTION_TAKES_GRAPH = "function-takes-graph"
    FUNCTION_NOT_INLINED = "function-not-inlined"
    # Weights in files beside it.
    EXTERNAL_PATH = "external-path"
    EXTERNAL_REFERENCE = "external-reference"
    EXTERNAL_MISSING = "external-missing"
    EXTERNAL_BOUNDS = "external-bounds"
    EXTERNAL_TOO_LARGE = "external-too-large"
    # What it takes.
    NAMES_TOO_LONG = "names-too-long"
    NO_INPUT = "no-input"
    INPUT_TYPE = "input-type"
    INPUT_SHAPE = "input-shape"
    RESERVED_NAME = "reserved-name"
    # What it gives.
    NO_OUTPUT = "no-output"
    NO_SCORES = "no-scores"
    SEVERAL_SCORES = "several-scores"
    # ONNX Runtime takes it.
    NOT_LOADED = "not-loaded"
    NOT_IMPLEMENTED = "not-implemented"
    TOO_MUCH_MEMORY = "too-much-memory"
    TOO_SLOW = "too-slow"
    CRASHED = "crashed"
    # It answers the first rows.
    RUN_FAILED = "run-failed"
    OUTPUT_SHAPE = "output-shape"
    OUTPUT_ROWS = "output-rows"
    TOO_MANY_CLASSES = "too-many-classes"
    NOT_FINITE = "not-finite"
    NOT_A_DISTRIBUTION = "not-a-distribution"
    ANSWERS_DIFFER = "answers-differ"
    ROWS_MIXED = "rows-mixed"
    RANDOM = "random"
    # It suits the measures that run it with noise, and the other members of an ensemble.
    NOISE = "noise"
    MEMBERS_DIFFER = "members-differ"
