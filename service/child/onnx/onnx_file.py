"""One ONNX file: its description, and sessions of the graphs made from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from google.protobuf.message import EncodeError
from onnx import ModelProto, TensorProto, ValueInfoProto, helper

from howsure.bins_document.pass_plan import PassPlan
from howsure.statistics.findings.outputs import LabelDifference
from service.child.onnx.batches import batch_rows, join_parts, run_batches
from service.child.onnx.model_inputs import ModelInputs, check_input_types
from service.child.onnx.noise import neutral_feeds
from service.child.onnx.session import VERSIONS, OnnxSession
from service.child.onnx.watchdog import Watchdog
from service.errors import InvalidInput, InvalidOnnxModel, ModelRule, TooLarge
from service.graph.describe import describe_onnx_model
from service.graph.description import NoiseSite, OnnxModelDescription, OutputChoice
from service.graph.gate.external_weights import attach_external_data
from service.graph.gate.versions import is_converted
from service.graph.load import load_onnx_model
from service.graph.noise.random_operators import has_random
from service.graph.output.choose import choose_output
from service.graph.output.plan import LOGITS, OUTPUT, OutputPlan, probe_graph
from service.graph.proto import keep_outputs
from service.graph.serving import SCORES, build_serving_graph
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import LoadedOnnxModel
from service.runner.messages.requests import LoadRequest

MAX_TRIAL_SCORES = 2**23
DOUBLE = TensorProto.DOUBLE
TRACED = (
    "it answers one row, but not several, although its inputs have a free batch axis: one of its "
    "nodes, such as a Reshape, has the batch of the export. So it runs one row at a time. Export "
    "it with x.flatten(1) or x.size(0) in place of the number"
)


@dataclass(frozen=True, eq=False)
class Probed:
    """The chosen output, and the outputs of the model for the trial rows.

    ``values`` are those of the tensor that the head reads; ``session`` runs the plain model.
    ``labels`` is how its label output differs from the predicted class.
    """

    choice: OutputChoice
    outputs: Mapping[str, Array]
    values: Array
    session: OnnxSession
    labels: LabelDifference | None = None


@dataclass(eq=False, repr=False)
class OnnxFile:
    """The description of a file, and its graph, which is edited in place."""

    data: bytes
    companions: Mapping[str, memoryview]
    request: LoadRequest
    watchdog: Watchdog

    def __post_init__(self) -> None:
        self.model = load_onnx_model(self.data, max_nodes=self.request.max_nodes)
        self.description: OnnxModelDescription = describe_onnx_model(self.model)
        if self.request.fixed_batch == 1:
            self.run_one_by_one("")
        check_input_types(self.description.inputs)
        self._attach()

    @property
    def inputs(self) -> ModelInputs:
        """The model's inputs."""
        request = self.request
        return ModelInputs(
            self.description.inputs, request.preprocessing, request.table_columns, request.of_rows
        )

    def run_one_by_one(self, why: str) -> None:
        """Run one row at a time from now on, for a reason, unless the batch is fixed already."""
        if self.description.fixed_batch is None:
            self.description = replace(self.description, fixed_batch=1, one_by_one=why)

    def renew(self) -> ModelProto:
        """Start again with the graph of the file."""
        self.model = load_onnx_model(self.data, max_nodes=self.request.max_nodes)
        self._attach()
        return self.model

    def _attach(self) -> None:
        in_memory = attach_external_data(self.model, self.companions)
        self._weights = {name: self.companions[name] for name in in_memory}

    def session(self, model: ModelProto) -> OnnxSession:
        """Load a graph.

        Raises
        ------
        InvalidOnnxModel
            If it cannot be loaded.
        """
        return self.session_of(serialised(model))

    def session_of(self, data: bytes) -> OnnxSession:
        """Load a graph from its bytes."""
        return OnnxSession(
            data,
            weights=self._weights,
            device=self.request.device,
            threads=self.request.threads,
            watchdog=self.watchdog,
        )

    def probe(
        self, plan: OutputPlan, sites: Sequence[NoiseSite], inputs: Mapping[str, Array]
    ) -> Probed:
        """Run the planned outputs on the trial rows, without noise, and choose among them."""
        session = self.session(probe_graph(self.model, plan))
        outputs = self._try(session, sites, inputs)
        if is_converted(self.model):
            self._compare_with_file(plan, outputs, inputs)
        choice, labels = choose_output(
            plan,
            outputs,
            n_samples=len(outputs[OUTPUT]),
            decision_threshold=self.request.decision_threshold,
        )
        self.refuse_too_many(choice.n_classes)
        reads_logits = choice.raw or choice.tensor != plan.tensor
        values = outputs[LOGITS] if reads_logits else outputs[OUTPUT]
        return Probed(choice, outputs, values, session, labels)

    def _compare_with_file(
        self, plan: OutputPlan, outputs: Mapping[str, Array], inputs: Mapping[str, Array]
    ) -> None:
        """Refuse a converted model whose answers differ from those of the file as it was sent."""
        original = ModelProto.FromString(self.data)
        attach_external_data(original, self.companions)
        if has_random(original, plan.tensor):
            return  # masks and noise of the other model are neutral, these draws are not
        original.graph.node.append(helper.make_node("Cast", [plan.tensor], [OUTPUT], to=DOUBLE))
        keep_outputs(original.graph, [helper.make_tensor_value_info(OUTPUT, DOUBLE, None)])
        own = self._try(self.session(original), (), inputs)
        if not np.allclose(own[OUTPUT], outputs[OUTPUT], rtol=1e-3, atol=1e-4, equal_nan=True):
            raise InvalidOnnxModel.because(
                ModelRule.OPSET_TOO_OLD,
                "ONNX's converter changes its answers; export it again with opset 11 or newer",
            )

    def scores(self, choice: OutputChoice, sites: Sequence[NoiseSite] = ()) -> OnnxSession:
        """Load the model with the scores of the classes as its only output, and no head."""
        graph = build_serving_graph(
            self.model, choice, top_k=(1,), with_scores=True, sites=sites
        ).graph
        kept = {SCORES, *(site.shape_output for site in sites)}
        outputs = [output for output in graph.output if output.name in kept]
        keep_outputs(
            graph, [helper.make_tensor_value_info(o.name, _type(o), None) for o in outputs]
        )
        return self.session(self.model)

    def describe(
        self,
        choices: Sequence[OutputChoice],
        provider: str,
        plans: tuple[PassPlan, ...],
        *,
        averaged: bool = False,
    ) -> LoadedOnnxModel:
        """Describe a loaded model, whose first member is this file."""
        request = self.request
        return LoadedOnnxModel(
            description=self.description,
            output=choices[0],
            top_k=request.events(choices[0].n_classes),
            provider=provider,
            versions=VERSIONS,
            scalar_outputs=request.scalar_outputs,
            members=tuple(choices[1:]),
            passes=plans,
            averaged=averaged,
            columns=request.columns,
            preprocessing=request.preprocessing,
            column_ranges=request.column_ranges,
        )

    def refuse_too_many(self, n_classes: int) -> None:
        """Refuse more classes than the service accepts."""
        most = self.request.max_classes
        if n_classes > most:
            raise TooLarge.at(
                "model",
                f"expected at most {most} classes, got {n_classes}",
                rule=ModelRule.TOO_MANY_CLASSES,
            )

    def _try(
        self, session: OnnxSession, sites: Sequence[NoiseSite], inputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Run one row first: its number of classes limits the size of a batch."""
        fixed = self.description.fixed_batch
        one = {name: array[:1] for name, array in inputs.items()}
        run = partial(self.run, session, session.output_names, sites=sites)
        first = run(one, size=fixed or 1)
        n_classes = int(np.prod(first[OUTPUT].shape[1:]))
        self.refuse_too_many(n_classes)
        most = max(1, MAX_TRIAL_SCORES // max(n_classes, 1))
        rows = {name: array[:most] for name, array in inputs.items()}
        try:
            return run(rows, size=batch_rows(rows, max(n_classes, 1), fixed))
        except (InvalidInput, InvalidOnnxModel) as error:
            if fixed is not None or error.violations[0].rule != ModelRule.RUN_FAILED:
                raise
            try:
                answers = run(rows, size=1)
            except (InvalidInput, InvalidOnnxModel):
                raise error from None
        self.run_one_by_one(TRACED)
        return answers

    def run(
        self,
        session: OnnxSession,
        names: Sequence[str],
        rows: Mapping[str, Array],
        *,
        size: int,
        start: int = 0,
        sites: Sequence[NoiseSite] = (),
    ) -> dict[str, Array]:
        """Return outputs of a graph for rows, ``size`` at a time, without noise."""
        neutral = neutral_feeds(sites)
        batches = run_batches(
            lambda fed, place: session.run(names, {**fed, **neutral}, place=place),
            rows,
            size=size,
            pad=self.description.fixed_batch is not None,
            location=self.request.location,
            start=start,
        )
        return join_parts([part for _, part in batches])


def serialised(model: ModelProto) -> bytes:
    """Return the bytes of a model.

    Raises
    ------
    InvalidOnnxModel
        If it is too large for one file.
    """
    try:
        return bytes(model.SerializeToString())
    except (EncodeError, ValueError) as error:
        raise InvalidOnnxModel.because(
            ModelRule.FILE_TOO_LARGE,
            "2 GiB is the limit of one ONNX file; save it with external weights",
        ) from error


def _type(output: ValueInfoProto) -> int:
    return int(output.type.tensor_type.elem_type)
