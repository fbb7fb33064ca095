"""Reads JSON that a child sent: of the expected types and of moderate size, or not at all."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from howsure.statistics.measures import MULTI_PASS_MEASURES, columns
from service.graph.description import OnnxModelDescription, OutputChoice
from service.runner.messages.frames import Array
from service.runner.messages.preprocessing import Colour, Interpolation, Layout, Preprocessing

MAX_TEXT = 4000
MAX_ITEMS = 1_000_000


class FieldError(ValueError):
    """A value is not of the type or size it must be."""


def text(value: object) -> str:
    """Return a string that is not too long and can be stored.

    Raises
    ------
    FieldError
        If it is none.
    """
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise FieldError("expected a string of moderate length")
    try:
        value.encode()  # a lone surrogate would fail later, far from its cause
    except UnicodeEncodeError as error:
        raise FieldError("expected a string of valid characters") from error
    return value


def integer(value: object, *, least: int = 0) -> int:
    """Return an integer that fits 64 bits and is at least ``least``.

    Raises
    ------
    FieldError
        If it is none.
    """
    if type(value) is not int or not least <= value < 2**63:
        raise FieldError(f"expected an integer from {least}")
    return value


def number(value: object) -> float:
    """Return a finite number that is at least 0.

    Raises
    ------
    FieldError
        If it is none.
    """
    if type(value) is int:
        return float(integer(value))
    if not isinstance(value, float) or not math.isfinite(value) or value < 0:
        raise FieldError("expected a finite number from 0")
    return value


def items(value: object) -> list[Any]:
    """Return a list that is not too long.

    Raises
    ------
    FieldError
        If it is none.
    """
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise FieldError("expected a list of moderate length")
    return value


def strings(value: object) -> tuple[str, ...]:
    """Return a list of strings.

    Raises
    ------
    FieldError
        If it is none.
    """
    return tuple(text(item) for item in items(value))


_SIDES = 2
_WORDS: Mapping[str, tuple[str, ...]] = {
    "interpolation": get_args(Interpolation),
    "colour": get_args(Colour),
    "layout": get_args(Layout),
}


def read_preprocessing(fields: Mapping[str, Any]) -> Preprocessing | None:
    """Return what is under ``preprocessing``; what was stored before there was any lacks the key.

    Raises
    ------
    FieldError
        If it is no description of preprocessing.
    """
    found = fields.get("preprocessing")
    if found is None:
        return None
    if not isinstance(found, dict) or found.keys() != Preprocessing().as_dict().keys():
        raise FieldError("preprocessing: expected its keys, and no others")
    for name, words in _WORDS.items():
        if found[name] not in words:
            raise FieldError(f"preprocessing: {name}")
    _check_sides(found["resize"], may_be_one=True)
    _check_sides(found["crop"], may_be_one=False)
    n_channels = 1 if found["colour"] == "grey" else 3
    _check_numbers([found["scale"]], n=1, above_zero=True)
    _check_numbers(found["mean"], n=n_channels, above_zero=False)
    _check_numbers(found["std"], n=n_channels, above_zero=True)
    if found["layout"] == "nhw" and n_channels > 1:
        raise FieldError("preprocessing: a layout without channels, of several")
    return Preprocessing.from_dict(found)


def _check_sides(value: object, *, may_be_one: bool) -> None:
    if value is None:
        return
    sides = [value] if may_be_one and type(value) is int else items(value)
    if len(sides) != (_SIDES if isinstance(value, list) else 1):
        raise FieldError("preprocessing: expected height and width")
    for side in sides:
        integer(side, least=1)


def _check_numbers(values: object, *, n: int, above_zero: bool) -> None:
    found = items(values)
    if len(found) != n:
        raise FieldError("preprocessing: expected a number a channel")
    for number in found:
        if type(number) not in (int, float) or not math.isfinite(number):
            raise FieldError("preprocessing: expected finite numbers")
        if above_zero and number <= 0:
            raise FieldError("preprocessing: expected numbers above 0")


KEY = "table_columns"


def with_table_columns(
    resolved: Mapping[str, Any], columns: Mapping[str, list[str]] | None
) -> dict[str, Any]:
    """Return `LoadedOnnxModel.resolved` with the columns that were told, if any were."""
    return {**resolved} if columns is None else {**resolved, KEY: dict(columns)}


def read_table_columns(resolved: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]] | None:
    """Return the columns of each input; None where none were told.

    Raises
    ------
    FieldError
        If they are no lists of names.
    """
    found = resolved.get(KEY)
    if found is None:
        return None
    if not isinstance(found, dict):
        raise FieldError("the columns of tables")
    return {name: strings(columns) for name, columns in found.items()}


GRADIENT = "gradient_norm"
LAST_LAYER = "last_layer_dropout_variance"
DROPOUT = "dropout_variance"
ENSEMBLE = "ensemble_variance"


@dataclass(frozen=True)
class PassPlan:
    """One measure's passes.

    Attributes
    ----------
    measure : str
        In `howsure.statistics.measures.MULTI_PASS_MEASURES`.
    passes : int
        Passes, members of an ensemble, or directions of a gradient, of all inputs together.
    seed : int
        Of the noise.
    rate : float or None
        Share that dropout drops, where the caller says so; once the model is known, that of the
        last layer.
    step : float or None
        Of a gradient's differences, in units of the input's spread.
    feature_shape : tuple of int or None
        What the last layer takes of one sample, once the model is known.
    scales : mapping of str to tuple of float, or None
        Spread of each input, once the model is known: one number, or one for each of its values.
    divisible : bool
        Whether the first few of its passes are a measure by themselves; the coordinates of a
        gradient are not.
    """

    measure: str
    passes: int
    seed: int
    rate: float | None = None
    step: float | None = None
    feature_shape: tuple[int, ...] | None = None
    scales: Mapping[str, tuple[float, ...]] | None = None
    divisible: bool = True

    @property
    def runs(self) -> int:
        """How often the whole model runs for it, beyond the run that predicts."""
        if self.measure == LAST_LAYER:
            return 0
        return 2 * self.passes if self.measure == GRADIENT else self.passes

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        plain = asdict(self)
        if self.feature_shape is not None:
            plain["feature_shape"] = list(self.feature_shape)
        if self.scales is not None:
            plain["scales"] = {name: list(scales) for name, scales in self.scales.items()}
        return plain


def read_pass_plans(values: object) -> tuple[PassPlan, ...]:
    """Read plans from another process or from the database.

    Raises
    ------
    FieldError
        If they are none.
    """
    try:
        return tuple(_read(value) for value in items(values))
    except (KeyError, TypeError, AttributeError) as error:
        raise FieldError(f"the plan of passes: {error}") from error


def serving(
    resolved: Mapping[str, Any], measures: Sequence[str], columns: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return `LoadedOnnxModel.resolved` with the passes of these measures alone.

    With ``columns``, those that the graph of a single model makes are these alone. The passes of
    an averaged prediction stay, whatever is asked for: the prediction needs them.
    """
    plans = [
        plan
        for plan in resolved.get("passes", [])
        if plan["measure"] in measures or (plan["measure"] == ENSEMBLE and resolved.get("averaged"))
    ]
    if columns is None or resolved.get("averaged"):
        return {**resolved, "passes": plans}
    return {**resolved, "passes": plans, "columns": sorted(columns)}


def _read(value: Mapping[str, Any]) -> PassPlan:
    measure = text(value["measure"])
    if measure not in MULTI_PASS_MEASURES:
        raise FieldError("the plan of passes: a measure that there is not")
    shape, scales = value["feature_shape"], value["scales"]
    return PassPlan(
        measure=measure,
        passes=integer(value["passes"], least=1),
        seed=integer(value["seed"]),
        rate=None if value["rate"] is None else number(value["rate"]),
        step=None if value["step"] is None else number(value["step"]),
        feature_shape=None if shape is None else tuple(integer(n, least=1) for n in items(shape)),
        scales=None
        if scales is None
        else {text(n): tuple(map(number, items(scale))) for n, scale in dict(scales).items()},
        divisible=value["divisible"] is True,
    )


PLAIN = "plain"  # in costs: one run of the model alone


@dataclass(frozen=True)
class OnnxMember:
    """One more ONNX file of an ensemble."""

    path: Path
    sha256: str = ""


@dataclass(frozen=True)
class OnnxModelFiles:
    """An ONNX file and its companions with external weights, by the name the model knows them.

    ``sha256`` is that of the ONNX file, ``companion_sha256`` those of the companions. A model
    stays loaded under these digests; a companion without one counts as another with each path,
    since the same ONNX file may go with other weights. ``members`` are the further files of an
    ensemble, which share the companions. ``tenant`` is whose it is: the rows of two tenants go
    through no process together, though their models be the same.
    """

    path: Path
    companions: Mapping[str, Path] = field(default_factory=dict)
    sha256: str = ""
    companion_sha256: Mapping[str, str] = field(default_factory=dict)
    members: tuple[OnnxMember, ...] = ()
    tenant: str = ""

    def key(self, resolved: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what tells this model, loaded with this choice, from others."""
        own = self.sha256 or str(self.path)
        members = [member.sha256 or str(member.path) for member in self.members]
        parts = [
            f"{name}={self.companion_sha256.get(name) or path}"
            for name, path in self.companions.items()
        ]
        return (self.tenant, own, *members, *sorted(parts), write_resolved(resolved))


@dataclass(frozen=True)
class NoFiles:
    """In the place of files, for a calibration without a model; ``tenant`` is whose it is."""

    tenant: str

    sha256 = ""

    def key(self, resolved: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what tells this calibration's answers from others."""
        return (self.tenant, write_resolved(resolved))


@dataclass(frozen=True, eq=False)
class HeadOutputs:
    """Answers of the uncertainty head.

    Attributes
    ----------
    top_classes : ndarray of int64, shape (n_samples, m)
        Best first.
    top_scores : ndarray of float32, shape (n_samples, m)
        The model's own softmax of these classes.
    uncertainty : mapping of str to ndarray of float32, shape (n_samples,)
        By column.
    """

    top_classes: NDArray[np.int64]
    top_scores: NDArray[np.float32]
    uncertainty: Mapping[str, NDArray[np.float32]]

    def rows(self, start: int, stop: int) -> "HeadOutputs":
        """Return the answers to some of the samples."""
        return HeadOutputs(
            top_classes=self.top_classes[start:stop],
            top_scores=self.top_scores[start:stop],
            uncertainty={name: of[start:stop] for name, of in self.uncertainty.items()},
        )

    @classmethod
    def concatenate(cls, parts: Sequence["HeadOutputs"]) -> "HeadOutputs":
        """Join answers in order."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            top_classes=np.concatenate([part.top_classes for part in parts]),
            top_scores=np.concatenate([part.top_scores for part in parts]),
            uncertainty={
                name: np.concatenate([part.uncertainty[name] for part in parts])
                for name in parts[0].uncertainty
            },
        )


@dataclass(frozen=True)
class LoadedOnnxModel:
    """An ONNX model that loaded and answered its trial rows.

    Attributes
    ----------
    description
        Inputs, outputs and versions of the file.
    output
        The output that is read, what it holds, and how that was found.
    top_k
        The events asked for that this many classes leave open, ``k < n_classes``; Top-1 if there
        are none.
    scalar_outputs
        Other outputs that are passed through, one number a sample: the measures ``output:<name>``.
    provider
        The execution provider that really ran.
    versions
        Versions of the libraries that ran it.
    members
        The outputs that are read of an ensemble's further members.
    passes
        How the measures that run the model more than once are made.
    averaged
        Whether the prediction is that of the mean probability, over members or passes.
    costs
        Milliseconds a row on the trial rows: ``plain``, one run of the model, and what each such
        measure takes.
    columns
        The uncertainties of its scores that it makes; None for all.
    preprocessing
        What makes its input of pictures, where they are sent.
    """

    description: OnnxModelDescription
    output: OutputChoice
    top_k: tuple[int, ...]
    provider: str
    versions: Mapping[str, str]
    scalar_outputs: tuple[str, ...] = ()
    members: tuple[OutputChoice, ...] = ()
    passes: tuple[PassPlan, ...] = ()
    averaged: bool = False
    costs: Mapping[str, float] = field(default_factory=dict)
    columns: frozenset[str] | None = None
    preprocessing: Preprocessing | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.output.n_classes

    @property
    def resolved(self) -> dict[str, Any]:
        """What `RunnerPool.record` and `RunnerPool.predict` need; plain JSON, to be stored."""
        found = {
            "output": self.output.as_dict(),
            "top_k": list(self.top_k),
            "scalar_outputs": list(self.scalar_outputs),
            "fixed_batch": self.description.fixed_batch,
            "members": [member.as_dict() for member in self.members],
            "passes": [plan.as_dict() for plan in self.passes],
            "averaged": self.averaged,
        }
        # A key tells a stored model from others: what there was not before is left out.
        if self.columns is not None:
            found["columns"] = sorted(self.columns)
        if self.preprocessing is not None:
            found["preprocessing"] = self.preprocessing.as_dict()
        return found

    def as_fields(self) -> dict[str, Any]:
        """Return the same for the wire."""
        return {
            "description": self.description.as_dict(),
            "output": self.output.as_dict(),
            "top_k": list(self.top_k),
            "scalar_outputs": list(self.scalar_outputs),
            "provider": self.provider,
            "versions": dict(self.versions),
            "members": [member.as_dict() for member in self.members],
            "passes": [plan.as_dict() for plan in self.passes],
            "averaged": self.averaged,
            "costs": dict(self.costs),
            "preprocessing": None if self.preprocessing is None else self.preprocessing.as_dict(),
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "LoadedOnnxModel":
        """Read what the child sent.

        Raises
        ------
        FieldError
            If anything is missing or of another type.
        """
        try:
            return cls(
                description=_description(fields["description"]),
                output=read_choice(fields["output"]),
                top_k=tuple(integer(k, least=1) for k in items(fields["top_k"])),
                provider=text(fields["provider"]),
                scalar_outputs=strings(fields["scalar_outputs"]),
                versions={text(n): text(v) for n, v in dict(fields["versions"]).items()},
                members=read_members(fields),
                passes=read_pass_plans(fields["passes"]),
                averaged=fields["averaged"] is True,
                costs={text(n): number(cost) for n, cost in dict(fields["costs"]).items()},
                preprocessing=read_preprocessing(fields),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FieldError(f"the description of a model: {error}") from error


def read_scalar_outputs(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the outputs that `LoadedOnnxModel.resolved` has passed through.

    Raises
    ------
    FieldError
        If they are no list of names.
    """
    # What was stored before there were any lacks the key.
    return strings(resolved.get("scalar_outputs", []))


def read_columns(resolved: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the uncertainties of scores that are made; None for all.

    Raises
    ------
    FieldError
        If they are no list of names.
    """
    found = resolved.get("columns")
    return None if found is None else frozenset(strings(found))


def score_columns(
    top_k: Sequence[int], *, logits: bool, only: frozenset[str] | None
) -> Iterator[str]:
    """Yield the names of the uncertainties that are made of scores, in a fixed order."""
    for name, _, _ in columns(top_k, logits=logits):
        if only is None or name in only:
            yield name


def read_members(resolved: Mapping[str, Any]) -> tuple[OutputChoice, ...]:
    """Return the outputs that are read of an ensemble's further members.

    Raises
    ------
    FieldError
        If one is none.
    """
    return tuple(read_choice(choice) for choice in items(resolved.get("members", [])))


def write_resolved(resolved: Mapping[str, Any]) -> str:
    """Return `LoadedOnnxModel.resolved` as text, the same for the same content."""
    return json.dumps(resolved, sort_keys=True)


def read_choice(values: Mapping[str, Any]) -> OutputChoice:
    """Read an output choice from another process or from the database.

    Raises
    ------
    FieldError
        If it is none.
    """
    try:
        choice = OutputChoice.from_dict(values)
        column = choice.positive_column
        for name in (choice.name, choice.tensor, choice.inferred):
            text(name)
        integer(choice.n_classes, least=2)
        if column is not None:
            integer(column)
    except (TypeError, ValueError) as error:
        raise FieldError(f"the choice of an output: {error}") from error
    if choice.kind not in ("logits", "probabilities") or type(choice.raw) is not bool:
        raise FieldError("the choice of an output: kind or raw")
    if choice.precision not in ("float32", "float64"):
        raise FieldError("the choice of an output: precision")
    return choice


def _description(values: Mapping[str, Any]) -> OnnxModelDescription:
    found = OnnxModelDescription.from_dict(values)
    for tensor in (*found.inputs, *found.outputs):
        text(tensor.name)
        text(tensor.dtype)
        for axis in tensor.shape or ():
            if axis is not None:
                integer(axis)
    for version in (found.opset, found.ir_version):
        integer(version)
    if found.fixed_batch is not None:
        integer(found.fixed_batch, least=1)
    for label in found.class_labels or ():
        if type(label) is not int:
            text(label)
    strings(list(found.external_files))
    return found


CONTENT = "content"
OUTPUT = "output:"
MAX_ADDED_BYTES = 2**28  # a head, its tables, and the masks of a last layer
MAX_EXPORTED_ROW_BYTES = 2**14


@dataclass(frozen=True, eq=False)
class ExportedOnnxModel:
    """The bytes of a calibrated file, and its own outputs for the rows it was tried on, by name."""

    content: bytes
    outputs: Mapping[str, Array]


def read_exported(tensors: Mapping[str, Array], n_rows: int) -> ExportedOnnxModel:
    """Read the answer to an export.

    Raises
    ------
    FieldError
        If it is not a file and arrays with one row for each of those it was tried on.
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
        # A copy: the frame, which holds the whole file, is let go.
        outputs[name.removeprefix(OUTPUT)] = array.copy()
    return ExportedOnnxModel(content.tobytes(), outputs)


@dataclass(frozen=True)
class Resolved:
    """What a first load found out: the output that is read, and those of further members."""

    choice: OutputChoice
    members: tuple[OutputChoice, ...]
    averaged: bool


@dataclass(frozen=True)
class LoadOptions:
    """What a load request says beside the files."""

    top_k: tuple[int, ...]
    max_classes: int
    max_nodes: int
    device: str
    threads: int
    location: str
    output_name: str | None
    output_kind: Any
    scalar_outputs: tuple[str, ...]
    passes: tuple[PassPlan, ...]
    columns: frozenset[str] | None
    preprocessing: Preprocessing | None
    resolved: Resolved | None
    versions: Mapping[str, str]

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], versions: Mapping[str, str]) -> "LoadOptions":
        """Read a request; what was resolved before stands above what is asked."""
        resolved = fields["resolved"]
        return cls(
            top_k=tuple(fields["top_k"]),
            max_classes=fields["max_classes"],
            max_nodes=fields["max_nodes"],
            device=fields["device"],
            threads=fields["threads"],
            location=fields["location"],
            output_name=fields["output"].get("name"),
            output_kind=fields["output"].get("kind"),
            scalar_outputs=read_scalar_outputs(resolved or fields),
            passes=read_pass_plans((resolved or fields).get("passes", [])),
            preprocessing=read_preprocessing(resolved or fields),
            columns=None if resolved is None else read_columns(resolved),
            resolved=None
            if resolved is None
            else Resolved(
                choice=read_choice(resolved["output"]),
                members=read_members(resolved),
                averaged=bool(resolved.get("averaged")),
            ),
            versions=versions,
        )

    def plan(self, measure: str) -> PassPlan | None:
        """Return how a measure is made, if it is asked for."""
        return next((plan for plan in self.passes if plan.measure == measure), None)

    def events(self, n_classes: int) -> tuple[int, ...]:
        """Return the events that so many classes leave open; Top-1 if there are none."""
        return tuple(k for k in self.top_k if k < n_classes) or (1,)
