"""Answers for calibrations without a model: requests hold the outputs of a model."""

from dataclasses import replace

import numpy as np

from howsure.outputs import OutputKind, are_distributions, are_percentages
from howsure.statistics.arrays import Floats
from howsure.statistics.measures import LEARNED, SCORE
from howsure.statistics.records.build import ranked_outputs
from howsure.statistics.records.pairs import pair_rows
from service.child.onnx.session import CPU, VERSIONS
from service.child.reading.checks import SUPPLIED_PREFIX
from service.child.reading.output_checks import AS_LOGITS
from service.child.reading.pairs import check_score_range
from service.child.requests.body_decoder import Decoded, read_request
from service.child.requests.limits import BodyLimits
from service.child.requests.media_types import NPY, SET_ROWS
from service.child.requests.named_rows import CLASSES, NamedRows
from service.child.requests.predict_request import (
    SCORE_KINDS,
    SCORES,
    class_scores,
    pair_scores,
    supplied_columns,
)
from service.errors import InvalidInput
from service.graph.description import OnnxModelDescription, TensorSpec
from service.runner.messages.dataset import PAIRS
from service.runner.messages.frames import Array, Buffer
from service.runner.messages.onnx_models import ANY_INPUT, LoadedOnnxModel
from service.runner.messages.open_inference import RequestedOutputs, TensorMetadata
from service.runner.messages.predict_batches import SentBodies
from service.runner.messages.scores_model import ScoresModelSpec
from service.runner.model_output import output_spec

FLOAT = "FP32"


class ScoresModel:
    """Ranks classes and computes the uncertainty of logits, or of logarithms of probabilities."""

    def __init__(self, spec: ScoresModelSpec) -> None:
        rows = TensorSpec(spec.kind, "float32", (None, spec.n_classes))
        self.spec = spec
        self.found = LoadedOnnxModel(
            description=OnnxModelDescription((rows,), (), 0, 0, None, (), None),
            output=spec.output,
            top_k=spec.top_k,
            provider=CPU,
            versions=VERSIONS,
            columns=spec.columns,
        )
        self._output = output_spec(spec.resolved())

    def matrix(
        self,
        rows: dict[str, Array],
        *,
        location: str,  # noqa: ARG002 - as of a model that runs
        start: int,  # noqa: ARG002 - as of a model that runs
        extents: object = None,  # noqa: ARG002 - as of a model that runs
    ) -> Array:
        """Return top classes, top scores and uncertainties of each row, side by side."""
        ((kind, scores),) = rows.items()
        classes, probabilities, measured = ranked_outputs(
            scores,
            top_k=self.spec.top_k,
            inputs=self._output.columns,
            logits=kind == "logits",
            threshold=self.spec.decision_threshold,
        )
        nothing = np.zeros(len(classes), np.float32)
        columns = [measured.get(name, nothing)[:, None] for name in self._output.columns]
        n_top = self._output.n_top
        top = classes[:, :n_top], probabilities[:, :n_top]
        return np.hstack([*top, *columns], dtype=np.float32)


def _decoded_pairs(scores: Floats, wanted: RequestedOutputs | None) -> Decoded:
    """Return scores of pairs: the measure is their negative, and their classes are not read."""
    uncertainty = (-scores).astype(np.float32)
    return Decoded(
        rows={PAIRS: pair_rows(scores, probabilities=False)},
        n_rows=len(scores),
        wanted=wanted,
        supplied={SCORE: uncertainty},
    )


class ScoresDecoder:
    """Decodes bodies, and checks them against the classes and events of a calibration."""

    def __init__(self, spec: ScoresModelSpec) -> None:
        self._spec = spec
        self._named_rows = {
            kind: NamedRows({kind: spec.class_names}, place=kind, of=CLASSES)
            for kind in SCORE_KINDS
        }

    def decode(self, sent: SentBodies, body: Buffer, limits: BodyLimits) -> Decoded:
        """Decode a body.

        Raises
        ------
        MalformedRequest, InvalidInput, TooLarge, UnsupportedFormat
            If it breaks a rule.
        """
        spec, limits = self._spec, limits.of_rows_of(self._spec.n_classes)
        request, wanted = read_request(sent, body, limits, inputs=self._inputs)
        if sent.media_type == NPY:
            # An array without a name is what the calibration set held.
            name = SCORES if spec.kind == PAIRS else spec.kind
            request = replace(request, arrays={name: request.arrays[ANY_INPUT]})
        if spec.kind == PAIRS:
            scores = pair_scores(request, max_rows=limits.max_rows)
            if spec.score_range is not None:
                check_score_range(scores, spec.score_range, place=SCORES)
            return _decoded_pairs(scores, wanted)
        if request.named_rows and request.named_kind in self._named_rows:
            arrays = self._named_rows[request.named_kind].read(request.named_rows, limits)
            request = replace(request, arrays=arrays)
        kind, scores = class_scores(request, n_classes=spec.n_classes, max_rows=limits.max_rows)
        if kind == "logits" and are_percentages(scores):
            raise InvalidInput.at("logits", AS_LOGITS)
        if kind == "logits" and not spec.may_be_probabilities and are_distributions(scores):
            raise InvalidInput.at(
                "logits",
                "expected logits, got numbers from 0 to 1 that sum to 1 in each row; send "
                "probabilities as `probabilities`",
            )
        supplied = supplied_columns(request, spec.supplied, n_rows=len(scores))
        self._check_events(kind)
        return Decoded(
            rows={kind: scores},
            n_rows=len(scores),
            wanted=wanted,
            supplied=supplied,
            by_position=spec.has_named_columns
            and not request.named_rows
            and sent.media_type != SET_ROWS,
        )

    def _check_events(self, kind: OutputKind) -> None:
        """Refuse probabilities where an event needs logits."""
        given = self._spec.given_by(kind)
        for event in self._spec.events:
            if event.column not in given and event.measure != LEARNED:
                raise InvalidInput.at(
                    kind, f"Top-{event.k} is answered by {event.measure}, which {kind} do not give"
                )

    def _inputs(self) -> list[TensorMetadata]:
        """Return the inputs of the Open Inference Protocol."""
        spec = self._spec
        if spec.kind == PAIRS:
            return [TensorMetadata(SCORES, FLOAT, [-1])]
        return [
            TensorMetadata(spec.kind, FLOAT, [-1, spec.n_classes]),
            *(TensorMetadata(SUPPLIED_PREFIX + name, FLOAT, [-1]) for name in spec.supplied),
        ]
