"""The requests that a child process answers, beside batches and sets; and its answer to an export.

One message is one dataclass: the parent sends its fields, the child converts them back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from howsure.bins_document.pass_plan import PassPlan
from howsure.outputs import OutputKind
from howsure.preprocessing import Preprocessing
from howsure.statistics.input_ranges import ColumnRanges
from service.graph.description import DecisionThreshold, OutputChoice
from service.runner.messages.convert import FieldError
from service.runner.messages.frames import Array
from service.runner.messages.sandbox_rules import SandboxRules
from service.runner.messages.scores_model import ScoresModelSpec

CONTENT = "content"
OUTPUT = "output:"
# The content of the file in an EXPORT request, which is a load request otherwise.
SPEC = "howsure_spec"
MAX_ADDED_BYTES = 2**28  # a head, its tables, and the masks of a last layer
MAX_EXPORTED_ROW_BYTES = 2**14


@dataclass(frozen=True)
class LoadRequest:
    """LOAD: read the files, sandbox the process, load the model.

    Attributes
    ----------
    paths
        The ONNX file, or the members of an ensemble.
    companions
        Paths of the files with external weights, by the name that the model uses.
    location
        The name of the trial rows in errors.
    choices
        The output that is read of each file, where an earlier load chose them. Without, they are
        chosen on the trial rows, by the caller's ``output_name`` and ``output_kind``.
    decision_threshold
        That of two classes, where the output is chosen on the trial rows.
    columns
        The score uncertainties that the graph computes; None for all.
    column_ranges
        The ranges of the columns of inputs; rows outside are marked.
    table_columns
        The columns of a table that each input is made of, if they have names.
    of_rows
        Number of rows of the whole set, for messages; None if only the trial rows are known.
    fixed_batch
        The number of rows at a time, where an earlier load found it out.
    """

    paths: tuple[str, ...]
    companions: Mapping[str, str]
    device: str
    threads: int
    max_classes: int
    max_nodes: int
    sandbox: SandboxRules
    top_k: tuple[int, ...] = ()
    location: str = "model"
    choices: tuple[OutputChoice, ...] = ()
    output_name: str | None = None
    output_kind: OutputKind | None = None
    decision_threshold: DecisionThreshold = None
    scalar_outputs: tuple[str, ...] = ()
    passes: tuple[PassPlan, ...] = ()
    columns: frozenset[str] | None = None
    preprocessing: Preprocessing | None = None
    column_ranges: Mapping[str, ColumnRanges] = field(default_factory=dict)
    table_columns: Mapping[str, tuple[str, ...]] | None = None
    of_rows: int | None = None
    fixed_batch: int | None = None

    def plan(self, measure: str) -> PassPlan | None:
        """Return how a measure is made, if it is requested."""
        return next((plan for plan in self.passes if plan.measure == measure), None)

    def events(self, n_classes: int) -> tuple[int, ...]:
        """Return the requested events with ``k < n_classes``; Top-1 if there are none."""
        return tuple(k for k in self.top_k if k < n_classes) or (1,)


@dataclass(frozen=True)
class LoadScoresRequest:
    """LOAD_SCORES: sandbox the process and answer for a calibration without a model."""

    spec: ScoresModelSpec
    sandbox: SandboxRules


@dataclass(frozen=True)
class RowsRequest:
    """PREDICT and RECORD: answer rows, or make records of them.

    Attributes
    ----------
    location
        The name of the rows in errors.
    start
        The number of the first row.
    each_run
        Seconds that one run of the model may take.
    seed
        Seed of the records' tie keys.
    of_rows
        Number of rows of the whole set, for messages; None if only these rows are known.
    """

    location: str
    start: int
    each_run: float
    seed: int = 0
    of_rows: int | None = None


@dataclass(frozen=True, eq=False)
class ExportedOnnxModel:
    """The bytes of a calibrated file, and its own outputs for the rows, by name."""

    content: bytes
    outputs: Mapping[str, Array]


def read_exported(tensors: Mapping[str, Array], n_rows: int) -> ExportedOnnxModel:
    """Return the answer to an export.

    Raises
    ------
    FieldError
        If it is not a file and outputs with one row for each row sent.
    """
    content = tensors.get(CONTENT)
    if content is None or content.dtype != np.uint8 or content.ndim != 1:
        raise FieldError("the content of an exported file")
    outputs = {}
    for name, array in tensors.items():
        if name == CONTENT:
            continue
        if not name.startswith(OUTPUT) or array.ndim < 1 or len(array) != n_rows:
            raise FieldError("an output of an exported file")
        # A copy releases the frame, which holds the whole file.
        outputs[name.removeprefix(OUTPUT)] = array.copy()
    return ExportedOnnxModel(content.tobytes(), outputs)
