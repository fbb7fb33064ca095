"""What a load request says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.graph.output import OutputChoice
from service.pictures.preprocessing import Preprocessing
from service.runner.description import read_choice, read_columns, read_members, read_scalar_outputs
from service.runner.pass_plan import PassPlan, read_pass_plans
from service.runner.preprocessing_fields import read_preprocessing
from service.runner.table_columns import read_table_columns


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
    table_columns: Mapping[str, tuple[str, ...]] | None
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
            table_columns=None if resolved is None else read_table_columns(resolved),
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
