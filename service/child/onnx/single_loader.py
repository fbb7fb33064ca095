"""Loads one ONNX model with its uncertainty head."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from howsure.bins_document.pass_plan import DROPOUT, JACOBIAN, LAST_LAYER, PassPlan
from howsure.onnx_head.builder import PREFIX
from howsure.statistics.measures.gradient import SLOPE_MEASURES
from howsure.statistics.measures.measure import output_column
from service.child.onnx.gradient import check_gradient_inputs, plan_gradient
from service.child.onnx.loaded_model import LoadedModel
from service.child.onnx.noise import USUAL_RATE, NoiseFeeds, check_masks, last_layer_masks
from service.child.onnx.onnx_file import OnnxFile, Probed
from service.child.onnx.single_model import SingleModel
from service.child.onnx.trial import (
    beside_outlier,
    first_rows,
    try_passes,
    verify_apart,
    verify_scalar,
    verify_scores,
)
from service.errors import InvalidConfig, InvalidInput
from service.graph.description import NoiseSite, OutputChoice
from service.graph.inline import inline_functions
from service.graph.noise.dropout import expose_dropout
from service.graph.noise.last_layer import find_last_layer
from service.graph.noise.last_layer_dropout import expose_features
from service.graph.noise.random_operators import refuse_random
from service.graph.output.plan import SCALAR, OutputPlan, plan_output
from service.graph.serving import TOP_CLASSES, TOP_SCORES, build_packed_graph, build_serving_graph
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import score_columns
from service.runner.messages.requests import LoadRequest


class SingleLoader:
    """Loads a model without random operators."""

    def __init__(self, file: OnnxFile, request: LoadRequest) -> None:
        self._file = file
        self._request = request
        self._scalars = {output_column(name): name for name in request.scalar_outputs}
        for plan in request.passes:
            if not request.choices and plan.measure in SLOPE_MEASURES:
                check_gradient_inputs(plan.measure, file.description.inputs)
        name = request.choices[0].name if request.choices else request.output_name
        self._output: OutputPlan = plan_output(
            file.model, name=name, kind=request.output_kind, scalars=request.scalar_outputs
        )
        if not request.choices:
            is_masked = any(request.plan(measure) for measure in (DROPOUT, LAST_LAYER))
            refuse_random(file.model, self._output.tensor, is_masked=is_masked)
        self._sites = self._open_dropout()

    def probe(self, inputs: Mapping[str, Array]) -> Sequence[Probed]:
        """Run the model on the trial rows, without noise, and choose its output."""
        return [self._file.probe(self._output, self._sites, inputs)]

    def plan(self, probes: Sequence[Probed], inputs: Mapping[str, Array]) -> tuple[PassPlan, ...]:
        """Complete the plans: steps of a gradient, rate and shape of the last layer."""
        plans = tuple(
            self._planned(plan, probes[0].choice, inputs) for plan in self._request.passes
        )
        if plans:
            self._file.renew()
            self._sites = self._open_dropout()
        return plans

    def build(self, choices: Sequence[OutputChoice], plans: tuple[PassPlan, ...]) -> LoadedModel:
        """Load the serving graph, and a second one for passes where it has its own."""
        (choice,), file, request = choices, self._file, self._request
        top_k = request.events(choice.n_classes)
        by_measure = {plan.measure: plan for plan in plans}
        dropout, last_layer = by_measure.get(DROPOUT), by_measure.get(LAST_LAYER)
        repeated = None
        if last_layer is not None and len(plans) > 1:
            repeated = file.scores(choice, self._sites)
            file.renew()
        of_scores = tuple(
            score_columns(top_k, logits=choice.kind == "logits", only=request.columns)
        )
        # A model that serves usually has only its head; then one output holds all of it.
        is_served = bool(request.choices) and request.columns is not None
        in_one = is_served and not plans and not self._scalars
        if in_one:
            graph = build_packed_graph(file.model, choice, top_k=top_k, columns=of_scores)
        else:
            graph = build_serving_graph(
                file.model,
                choice,
                top_k=top_k,
                columns=of_scores,
                scalars=self._scalars,
                with_scores=True,
                sites=self._sites if repeated is None else (),
                last_layer_masks=None if last_layer is None else last_layer_masks(last_layer),
            )
        session = file.session(graph)
        repeated = repeated or session
        noise = None
        if dropout is not None:
            fixed = file.description.fixed_batch
            noise = NoiseFeeds(repeated, self._sites, seed=dropout.seed, fixed_batch=fixed)
        in_graph = () if last_layer is None else (LAST_LAYER,)
        model = SingleModel(
            session=session,
            repeated=repeated,
            choice=choice,
            columns=(*of_scores, *self._scalars, *in_graph),
            dropout=dropout,
            noise=noise,
            last_layer=last_layer,
            slopes=tuple(plan for plan in plans if plan.measure in SLOPE_MEASURES),
            is_packed=in_one,
        )
        found = file.describe(choices, session.provider, plans)
        return LoadedModel(model, found, numbers=_numbers(choice.n_classes, plans))

    def try_out(
        self, loaded: LoadedModel, probes: Sequence[Probed], inputs: Mapping[str, Array]
    ) -> dict[str, float]:
        """Compare the head's answers with the model's own, and time the passes."""
        model, location = loaded.answering, self._request.location
        if not isinstance(model, SingleModel):
            raise TypeError("expected a single model")
        self._verify(
            replace(loaded, answering=replace(model, dropout=None, slopes=())),
            probes[0],
            inputs,
        )
        return try_passes(model, loaded.found, probes[0], inputs, location, numbers=loaded.numbers)

    def _open_dropout(self) -> list[NoiseSite]:
        """Open the Dropout nodes before the planned output, in the same order each time."""
        dropout = self._request.plan(DROPOUT)
        if dropout is None:
            return []
        return expose_dropout(self._file.model, self._output.tensor, rate=dropout.rate)

    def _planned(
        self, asked: PassPlan, choice: OutputChoice, inputs: Mapping[str, Array]
    ) -> PassPlan:
        """Complete one plan."""
        if asked.measure in SLOPE_MEASURES:
            return plan_gradient(asked, inputs)
        if asked.measure != LAST_LAYER:
            return asked
        model = self._file.renew()
        inline_functions(model)
        layer = find_last_layer(model.graph, choice.tensor)
        rate = asked.rate or layer.rate or USUAL_RATE
        features = self._file.session(expose_features(model, choice))
        rows = first_rows(inputs, 1, self._file.description.fixed_batch)
        (shown,) = features.run(features.output_names, rows, place=self._request.location).values()
        if len(shown) != len(next(iter(rows.values()))):
            raise InvalidConfig.at(
                "config.measures",
                f"{LAST_LAYER}: the first axis of what the last layer takes, {list(shown.shape)}, "
                "is not that of the rows",
            )
        planned = replace(asked, rate=rate, feature_shape=tuple(shown.shape[1:]))
        check_masks(planned)
        return planned

    def _verify(self, plain: LoadedModel, probed: Probed, inputs: Mapping[str, Array]) -> None:
        location = self._request.location
        rows = {name: array[: len(probed.values)] for name, array in inputs.items()}
        head = plain.answer(rows, location=location, start=0)
        verify_scores(probed.choice, probed.values, head[TOP_SCORES], head[TOP_CLASSES])
        if self._file.description.fixed_batch is None:
            few = first_rows(rows, COMPARED_ROWS, None)
            apart = plain.apart().answer(few, location=location, start=0)
            verify_apart(apart, head)
            if (crowded := beside_outlier(few)) is not None:
                # Such as a category that is a float: a larger one is no fault of the model.
                beside = head
                with suppress(InvalidInput):
                    beside = plain.answer(crowded, location=location, start=0)
                verify_apart(apart, beside)
        for position, column in enumerate(self._scalars):
            verify_scalar(probed.outputs[f"{SCALAR}{position}"], head[PREFIX + column])


COMPARED_ROWS = 8


def _numbers(n_classes: int, plans: Sequence[PassPlan]) -> int:
    """Return the numbers that a row takes at once before they are reduced."""
    numbers = [n_classes]
    for plan in plans:
        if plan.measure == LAST_LAYER:
            features = int(np.prod(plan.feature_shape or (1,)))
            numbers.append(plan.passes * max(features, n_classes))
        elif plan.measure in {DROPOUT, JACOBIAN}:
            numbers.append(plan.passes * n_classes)
    return max(numbers)
