"""An ONNX model: its files, its description once loaded, and what is stored to load it again."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from howsure.bins_document.pass_plan import ENSEMBLE, PassPlan
from howsure.preprocessing import Preprocessing
from howsure.statistics.findings.outputs import LabelDifference
from howsure.statistics.input_ranges import ColumnRanges
from howsure.statistics.learned.inputs import is_input
from howsure.statistics.measures import columns
from service.graph.description import OnnxModelDescription, OutputChoice
from service.runner.messages.convert import NotNegativeFloat, Positive, convert, to_json
from service.runner.messages.frames import Array
from service.runner.messages.packed import MANY, MAX_NAMES_BYTES, checked, packed
from service.runner.messages.reading import LABEL

# The name of a single input, and of the columns of a table of which none were chosen.
ANY_INPUT = "inputs"
TABLE_COLUMNS = "table_columns"
RESOLVED = ("output", "top_k", "scalar_outputs", "members", "passes", "averaged")


@dataclass(frozen=True)
class OnnxMember:
    """A further ONNX file of an ensemble."""

    path: Path
    sha256: str = ""


@dataclass(frozen=True)
class OnnxModelFiles:
    """An ONNX file and its companions with external weights, by the name that the model uses.

    A model stays loaded under the digests ``sha256`` and ``companion_sha256``. A companion
    without a digest counts as a different one with each path, since one ONNX file may come with
    different weights. The ``members`` of an ensemble share the companions. Rows of two tenants
    never share a process, even if their models are equal: ``tenant`` is part of the key.
    """

    path: Path
    companions: Mapping[str, Path] = field(default_factory=dict)
    sha256: str = ""
    companion_sha256: Mapping[str, str] = field(default_factory=dict)
    members: tuple[OnnxMember, ...] = ()
    tenant: str = ""

    def key(self, resolved: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the key of this model, loaded in this way."""
        own = self.sha256 or str(self.path)
        members = [member.sha256 or str(member.path) for member in self.members]
        parts = [
            f"{name}={self.companion_sha256.get(name) or path}"
            for name, path in self.companions.items()
        ]
        return (self.tenant, own, *members, *sorted(parts), write_resolved(resolved))


@dataclass(frozen=True)
class NoFiles:
    """The absence of files, for a tenant's calibration without a model."""

    tenant: str

    sha256 = ""

    def key(self, resolved: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the key of this calibration."""
        return (self.tenant, write_resolved(resolved))


@dataclass(frozen=True, kw_only=True)
class ModelSetup:
    """How a model is loaded and its answers are read.

    Descriptions stored by earlier releases lack the fields that have a default.

    Attributes
    ----------
    output
        The output that is read, its content, and how that was inferred.
    top_k
        The requested events with ``k < n_classes``; Top-1 if there are none.
    scalar_outputs
        Other outputs that are passed through, one number a sample: the measures ``output:<name>``.
    members
        The outputs that are read of an ensemble's further members.
    passes
        The measures that run the model more than once.
    averaged
        Whether the prediction is the mean probability over members or passes.
    columns
        The score uncertainties that the graph computes, inputs of the learned measure, and the
        extents of the model's inputs; None for all uncertainties.
    preprocessing
        How pictures become the model's input.
    column_ranges
        By input, the ranges of its columns in the calibration set; rows outside are marked.
    """

    output: OutputChoice
    top_k: tuple[Positive, ...]
    scalar_outputs: tuple[str, ...] = ()
    members: tuple[OutputChoice, ...] = ()
    passes: tuple[PassPlan, ...] = ()
    averaged: bool = False
    columns: frozenset[str] | None = None
    preprocessing: Preprocessing | None = None
    column_ranges: Mapping[str, ColumnRanges] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ResolvedModel(ModelSetup):
    """The typed form of `LoadedOnnxModel.resolved`."""

    fixed_batch: Positive | None


@dataclass(frozen=True, kw_only=True)
class LoadedOnnxModel(ModelSetup):
    """An ONNX model that loaded and answered its trial rows.

    Attributes
    ----------
    description
        Inputs, outputs and versions of the file.
    provider
        The execution provider that really ran.
    versions
        Versions of the libraries that ran it.
    costs
        Milliseconds a row on the trial rows: ``plain``, one run of the model, and each measure
        of ``passes``.
    labels
        How the label output, if any, differs from the predicted class on the trial rows.
    """

    description: OnnxModelDescription
    provider: str
    versions: Mapping[str, str]
    costs: Mapping[str, NotNegativeFloat] = field(default_factory=dict)
    labels: LabelDifference | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.output.n_classes

    @property
    def resolved(self) -> dict[str, Any]:
        """What is stored to load the model again: plain JSON, whose text is part of its key."""
        fields = to_json(self)
        found = {name: fields[name] for name in RESOLVED}
        found["fixed_batch"] = self.description.fixed_batch
        # Keys of models stored before these fields existed must not change.
        if self.columns is not None:
            found["columns"] = sorted(self.columns)
        if self.preprocessing is not None:
            found["preprocessing"] = fields["preprocessing"]
        if self.column_ranges:
            found["column_ranges"] = fields["column_ranges"]
        return found


_LOADED, _CLASS_LABELS = "loaded", "class_labels"


@dataclass(frozen=True)
class _ClassLabels:
    class_labels: Annotated[tuple[int | str, ...], MANY] | None


def packed_model(loaded: LoadedOnnxModel) -> dict[str, Array]:
    """Return the arrays that answer LOAD and LOAD_SCORES."""
    labels, own = loaded.description.class_labels, replace(loaded.description, class_labels=None)
    return {
        _LOADED: packed(replace(loaded, description=own)),
        _CLASS_LABELS: packed(_ClassLabels(labels)),
    }


def unpacked_model(tensors: Mapping[str, Array]) -> LoadedOnnxModel:
    """Return the model that a child has loaded.

    Raises
    ------
    FieldError
        If the description breaks a rule.
    """
    labels = checked(tensors, _CLASS_LABELS, _ClassLabels, most_bytes=MAX_NAMES_BYTES)
    loaded = checked(tensors, _LOADED, LoadedOnnxModel)
    return replace(loaded, description=replace(loaded.description, **vars(labels)))


def read_resolved(resolved: Mapping[str, Any]) -> ResolvedModel:
    """Return the typed form of `LoadedOnnxModel.resolved`.

    Raises
    ------
    FieldError
        If a field is missing, or breaks a rule.
    """
    return convert(dict(resolved), ResolvedModel)


def write_resolved(resolved: Mapping[str, Any]) -> str:
    """Return `LoadedOnnxModel.resolved` as text, the same for the same content."""
    return json.dumps(resolved, sort_keys=True)


def serving(
    resolved: Mapping[str, Any],
    measures: Sequence[str],
    columns: Sequence[str] | None = None,
    column_ranges: Mapping[str, ColumnRanges] | None = None,
) -> dict[str, Any]:
    """Return `LoadedOnnxModel.resolved` with the passes of these measures only.

    With ``columns``, the model answers only these; with ``column_ranges``, it marks rows outside.
    The passes of an averaged prediction always stay: the prediction needs them.
    """
    plans = [
        plan
        for plan in resolved.get("passes", [])
        if plan["measure"] in measures or (plan["measure"] == ENSEMBLE and resolved.get("averaged"))
    ]
    if columns is None:
        return {**resolved, "passes": plans}
    found = {**resolved, "passes": plans, "columns": sorted(columns)}
    if column_ranges:
        found["column_ranges"] = to_json(column_ranges)
    return found


def names_each_input(columns: Mapping[str, Sequence[str]], inputs: Collection[str]) -> bool:
    """Tell whether a table has a column for each input, of the same name, and maybe others.

    An input called as the labels are has no such column.
    """
    own = {*columns.get(ANY_INPUT, ())} - {LABEL}
    return columns.keys() - {LABEL} == {ANY_INPUT} and len(inputs) > 1 and set(inputs) <= own


def with_table_columns(
    resolved: Mapping[str, Any], columns: Mapping[str, list[str]] | None
) -> dict[str, Any]:
    """Return `LoadedOnnxModel.resolved` with the columns that the caller named, if any."""
    return {**resolved} if columns is None else {**resolved, TABLE_COLUMNS: dict(columns)}


def read_table_columns(resolved: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]] | None:
    """Return the columns of each input; None where the caller named none.

    Raises
    ------
    FieldError
        If they are not lists of names.
    """
    found = resolved.get(TABLE_COLUMNS)
    return None if found is None else convert(found, dict[str, tuple[str, ...]])


_LEAST, _MOST, _OUTSIDE = "least:", "most:", "outside:"


def outside(name: str) -> str:
    """Return the name of the column that is 1 where a column of an input is out of its range."""
    return _OUTSIDE + name


def least_and_most(name: str) -> tuple[str, str]:
    """Return the names of the columns with the extent of an input in each row."""
    return _LEAST + name, _MOST + name


def inputs_with_extents(columns: Collection[str]) -> tuple[str, ...]:
    """Return the inputs whose extents are among the columns, in a fixed order."""
    return names_after(_LEAST, columns)


def names_after(prefix: str, columns: Collection[str]) -> tuple[str, ...]:
    """Return what follows the prefix in names of columns that have it, in a fixed order."""
    return tuple(sorted(name.removeprefix(prefix) for name in columns if name.startswith(prefix)))


def score_columns(
    top_k: Sequence[int], *, logits: bool, only: frozenset[str] | None
) -> Iterator[str]:
    """Yield the names of the uncertainties computed from scores, in a fixed order.

    Inputs of the learned measure come last, and only if they are named.
    """
    for name, _, _ in columns(top_k, logits=logits):
        if only is None or name in only:
            yield name
    yield from sorted(name for name in only or () if is_input(name))
