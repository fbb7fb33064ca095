"""What the parent knows of an ONNX model: which files, and what the child found in them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.measures import columns
from service.graph.description import OnnxModelDescription
from service.graph.output import OutputChoice
from service.pictures.preprocessing import Preprocessing
from service.runner.fields import FieldError, integer, items, number, strings, text
from service.runner.pass_plan import PassPlan, read_pass_plans
from service.runner.preprocessing_fields import read_preprocessing

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
