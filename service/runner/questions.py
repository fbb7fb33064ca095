"""What the pool asks its children, and in which time they are to answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.core.arrays import Labels
from service.errors import InvalidDataset, InvalidInput
from service.pictures.preprocessing import Preprocessing
from service.runner.answers import Expected
from service.runner.arrays import CHUNK_ROWS
from service.runner.asking import Question
from service.runner.description import OnnxModelFiles
from service.runner.exported import MAX_ADDED_BYTES, MAX_EXPORTED_ROW_BYTES
from service.runner.frames import LABELS, Array, Kind
from service.runner.pass_plan import PassPlan
from service.runner.sandbox import DEFAULT_RULES, SandboxRules


@dataclass(frozen=True)
class Questions:
    """The questions of one pool; times in seconds."""

    load_timeout: float
    run_timeout: float
    max_classes: int
    threads: int
    max_nodes: int = 50_000
    sandbox: SandboxRules = DEFAULT_RULES

    def try_out(  # noqa: PLR0913 - what a model is asked to be
        self,
        files: OnnxModelFiles,
        trial: Mapping[str, Array],
        *,
        output: Mapping[str, str | None],
        top_k: Sequence[int],
        scalar_outputs: Sequence[str],
        passes: Sequence[PassPlan],
        preprocessing: Preprocessing | None,
        device: str,
        location: str,
    ) -> Question:
        """Load a model, and choose its output on these rows."""
        fields = self._load_fields(files, top_k, device)
        fields |= {
            "output": dict(output),
            "scalar_outputs": list(scalar_outputs),
            "passes": [plan.as_dict() for plan in passes],
            "preprocessing": None if preprocessing is None else preprocessing.as_dict(),
            "resolved": None,
        }
        return self._loading(fields, trial, location)

    def load(self, files: OnnxModelFiles, resolved: Mapping[str, Any], *, device: str) -> Question:
        """Load a model whose output was chosen before."""
        fields = self._load_fields(files, resolved["top_k"], device)
        fields |= {"output": {}, "scalar_outputs": [], "passes": [], "resolved": dict(resolved)}
        return self._loading(fields, {}, "model")

    def export(
        self,
        files: OnnxModelFiles,
        resolved: Mapping[str, Any],
        spec: Mapping[str, Any],
        rows: Mapping[str, Array],
        *,
        device: str,
        location: str,
    ) -> Question:
        """Write a calibrated model as one file, and run it on these rows."""
        asked = self.load(files, resolved, device=device)
        n_rows = len(next(iter(rows.values())))
        answers = n_rows * MAX_EXPORTED_ROW_BYTES
        return replace(
            asked,
            kind=Kind.EXPORT,
            fields={**asked.fields, "spec": dict(spec)},
            tensors=rows,
            location=location,
            timeout=asked.timeout + self.run_timeout * -(-n_rows // CHUNK_ROWS),
            max_answer_bytes=files.path.stat().st_size + MAX_ADDED_BYTES + answers,
        )

    def predict(
        self, inputs: Mapping[str, Array], expected: Expected, *, start: int, location: str
    ) -> Question:
        """Answer rows; ``start`` is the number of the first."""
        n_rows = len(next(iter(inputs.values())))
        return Question(
            kind=Kind.PREDICT,
            fields={"start": start, "each_run": self.run_timeout * expected.largest_run},
            tensors=inputs,
            location=location,
            invalid=InvalidInput,
            timeout=self.run_timeout * expected.runs,
            max_answer_bytes=expected.most_bytes(n_rows),
        )

    def record(
        self,
        inputs: Mapping[str, Array],
        labels: Labels,
        expected: Expected,
        *,
        seed: int,
        start: int,
        location: str,
    ) -> Question:
        """Make the records of rows; ``start`` is the number of the first."""
        return Question(
            kind=Kind.RECORD,
            fields={
                "start": start,
                "seed": seed,
                "each_run": self.run_timeout * expected.largest_run,
            },
            tensors={**inputs, LABELS: labels},
            location=location,
            invalid=InvalidDataset,
            timeout=self.run_timeout * expected.runs * -(-len(labels) // CHUNK_ROWS),
            max_answer_bytes=expected.most_bytes(len(labels)),
        )

    def _loading(
        self, fields: Mapping[str, Any], trial: Mapping[str, Array], location: str
    ) -> Question:
        return Question(
            kind=Kind.LOAD,
            fields=fields,
            tensors=trial,
            location=location,
            invalid=InvalidDataset,
            timeout=self.load_timeout * (1 + len(fields["members"])),
            max_answer_bytes=0,
        )

    def _load_fields(
        self, files: OnnxModelFiles, top_k: Sequence[int], device: str
    ) -> dict[str, Any]:
        return {
            "path": str(files.path.absolute()),
            "companions": {name: str(at.absolute()) for name, at in files.companions.items()},
            "members": [str(member.path.absolute()) for member in files.members],
            "top_k": list(top_k),
            "max_classes": self.max_classes,
            "max_nodes": self.max_nodes,
            "device": device,
            "threads": self.threads,
            "sandbox": self.sandbox.as_dict(),
        }
