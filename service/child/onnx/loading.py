"""From the files of an ONNX model to one that answers."""

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from howsure.statistics.measures.measure import output_column
from howsure.statistics.softmax import n_recorded_classes
from service.child.onnx.averaged_model import load_ensemble, load_stochastic
from service.child.onnx.gradient import check_gradient_inputs, plan_gradient
from service.child.onnx.loaded_model import LoadedModel
from service.child.onnx.noise import USUAL_RATE, NoiseFeeds, check_masks, last_layer_masks
from service.child.onnx.onnx_file import OnnxFile, Probed
from service.child.onnx.session import OnnxSession
from service.child.onnx.single_model import SingleModel
from service.child.onnx.trial import (
    first_rows,
    fitted_trial,
    try_passes,
    verify_alone,
    verify_head,
    verify_scalar,
)
from service.child.onnx.watchdog import Watchdog
from service.errors import InferenceFailed, InvalidConfig
from service.graph.description import NoiseSite, OutputChoice
from service.graph.inline import inline_functions
from service.graph.noise.dropout import expose_dropout
from service.graph.noise.last_layer import find_last_layer
from service.graph.noise.last_layer_dropout import expose_features
from service.graph.noise.random_operators import refuse_random
from service.graph.output.plan import SCALAR, OutputPlan, plan_output
from service.graph.proto import PREFIX
from service.runner.messages.frames import Array
from service.runner.messages.onnx_models import (
    DROPOUT,
    ENSEMBLE,
    GRADIENT,
    LAST_LAYER,
    LoadedOnnxModel,
    LoadOptions,
    PassPlan,
    score_columns,
)


def load_single(file: OnnxFile, options: LoadOptions, trial: Mapping[str, Array]) -> LoadedModel:
    """Load a model: with a resolved choice as it is, otherwise chosen and checked on the rows."""
    loader = _Single(file, options)
    if options.resolved is not None:
        return loader.rebuild(options.resolved.choice)
    return loader.resolve(trial)


class _Single:
    def __init__(self, file: OnnxFile, options: LoadOptions) -> None:
        self._file = file
        self._options = options
        self._scalars = {output_column(name): name for name in options.scalar_outputs}
        self._provider = ""

    def rebuild(self, choice: OutputChoice) -> LoadedModel:
        plan = self._plan(choice.name)
        return self._load(choice, self._sites(plan), self._options.passes)

    def resolve(self, trial: Mapping[str, Array]) -> LoadedModel:
        file, options = self._file, self._options
        if options.plan(GRADIENT) is not None:
            check_gradient_inputs(file.description.inputs)
        plan = self._plan(options.output_name)
        refuse_random(file.model, plan.tensor)
        sites = self._sites(plan)
        inputs = fitted_trial(trial, file.inputs, options.location)
        probed = file.probe(plan, sites, inputs)
        plans = tuple(self._planned(asked, probed.choice, inputs) for asked in options.passes)
        if plans:
            file.renew()
            sites = self._sites(plan)
        loaded = self._load(probed.choice, sites, plans)
        self._verify(loaded, probed, inputs)
        costs = try_passes(
            _single(loaded),
            loaded.found,
            probed,
            inputs,
            options.location,
            numbers=loaded.numbers,
        )
        return replace(loaded, found=replace(loaded.found, costs=costs))

    def _plan(self, name: str | None) -> OutputPlan:
        return plan_output(
            self._file.model,
            name=name,
            kind=self._options.output_kind,
            scalars=self._options.scalar_outputs,
        )

    def _sites(self, plan: OutputPlan) -> list[NoiseSite]:
        """Open the Dropout nodes before the planned output, in the same order each time."""
        dropout = self._options.plan(DROPOUT)
        if dropout is None:
            return []
        return expose_dropout(self._file.model, plan.tensor, rate=dropout.rate)

    def _planned(
        self, asked: PassPlan, choice: OutputChoice, inputs: Mapping[str, Array]
    ) -> PassPlan:
        """Return a plan with what has to be known of the model and the rows."""
        if asked.measure == GRADIENT:
            return plan_gradient(asked, inputs)
        if asked.measure != LAST_LAYER:
            return asked
        model = self._file.renew()
        inline_functions(model)
        layer = find_last_layer(model.graph, choice.tensor)
        rate = asked.rate or layer.rate or USUAL_RATE
        features = self._file.session(expose_features(model, choice))
        rows = first_rows(inputs, 1, self._file.description.fixed_batch)
        (shown,) = features.run(features.output_names, rows, place=self._options.location).values()
        if len(shown) != len(next(iter(rows.values()))):
            raise InvalidConfig.at(
                "config.measures",
                f"{LAST_LAYER}: the first axis of what the last layer takes, {list(shown.shape)}, "
                "is not that of the rows",
            )
        planned = replace(asked, rate=rate, feature_shape=tuple(shown.shape[1:]))
        check_masks(planned)
        return planned

    def _load(
        self, choice: OutputChoice, sites: Sequence[NoiseSite], plans: tuple[PassPlan, ...]
    ) -> LoadedModel:
        file, options = self._file, self._options
        file.refuse_too_many(choice.n_classes)
        top_k = options.events(choice.n_classes)
        by_measure = {plan.measure: plan for plan in plans}
        dropout, last_layer = by_measure.get(DROPOUT), by_measure.get(LAST_LAYER)
        masks = None if last_layer is None else last_layer_masks(last_layer)
        repeated = None
        if last_layer is not None and len(plans) > 1:
            repeated = file.scores(choice, sites)
            file.renew()
        of_scores = tuple(
            score_columns(top_k, logits=choice.kind == "logits", only=options.columns)
        )
        # What serves has nothing beside its head, most often; then one output holds it all.
        in_one = options.columns is not None and not plans and not self._scalars
        if in_one:
            session = file.serve_in_one(choice, top_k=top_k, columns=of_scores)
        else:
            session = file.serve(
                choice,
                top_k=top_k,
                columns=of_scores,
                scalars=self._scalars,
                sites=sites if repeated is None else (),
                last_layer_masks=masks,
            )
        repeated = repeated or session
        in_graph = () if last_layer is None else (LAST_LAYER,)
        model = SingleModel(
            session=session,
            repeated=repeated,
            kind=choice.kind,
            columns=(*of_scores, *self._scalars, *in_graph),
            dropout=dropout,
            noise=self._noise(repeated, sites, dropout),
            last_layer=last_layer,
            gradient=by_measure.get(GRADIENT),
            n_top=n_recorded_classes(choice.n_classes, top_k) if in_one else None,
        )
        found = LoadedOnnxModel(
            description=file.description,
            output=choice,
            top_k=top_k,
            provider=session.provider,
            versions=options.versions,
            scalar_outputs=options.scalar_outputs,
            passes=plans,
            columns=options.columns,
            preprocessing=options.preprocessing,
        )
        return LoadedModel(model, found, numbers=_numbers(choice.n_classes, plans))

    def _noise(
        self, session: OnnxSession, sites: Sequence[NoiseSite], dropout: PassPlan | None
    ) -> NoiseFeeds | None:
        if dropout is None:
            return None
        fixed = self._file.description.fixed_batch
        return NoiseFeeds(session, sites, seed=dropout.seed, fixed_batch=fixed)

    def _verify(self, loaded: LoadedModel, probed: Probed, inputs: Mapping[str, Array]) -> None:
        """Compare the head's answers with the model's own, from another run."""
        rows = {name: array[: len(probed.values)] for name, array in inputs.items()}
        plain = replace(loaded, answering=replace(_single(loaded), dropout=None, gradient=None))
        head = plain.answer(rows, location=self._options.location, start=0, refuse=False)
        verify_head(probed.choice, probed.values, head)
        if self._file.description.fixed_batch is None:
            one = first_rows(inputs, 1, None)
            alone = plain.answer(one, location=self._options.location, start=0, refuse=False)
            verify_alone(head, alone)
        for position, column in enumerate(self._scalars):
            verify_scalar(probed.outputs[f"{SCALAR}{position}"], head[PREFIX + column])


def _single(loaded: LoadedModel) -> SingleModel:
    if not isinstance(loaded.answering, SingleModel):
        raise TypeError("expected a single model")
    return loaded.answering


def _numbers(n_classes: int, plans: Sequence[PassPlan]) -> int:
    """Return how many numbers a row takes at once before they are summed up."""
    numbers = [n_classes]
    for plan in plans:
        if plan.measure == LAST_LAYER:
            features = int(np.prod(plan.feature_shape or (1,)))
            numbers.append(plan.passes * max(features, n_classes))
        elif plan.measure == DROPOUT:
            numbers.append(plan.passes * n_classes)
    return max(numbers)


@dataclass(frozen=True)
class Bytes:
    """The contents of a model's files; ``onnx_models`` are several for an ensemble."""

    onnx_models: Sequence[bytes]
    companions: Mapping[str, memoryview]


def read_files(paths: Sequence[str], companions: Mapping[str, str]) -> Bytes:
    """Read the ONNX files and map their companions; nothing looks at the bytes yet.

    Raises
    ------
    InferenceFailed
        If a file cannot be read.
    """
    try:
        return Bytes(
            [Path(path).read_bytes() for path in paths],
            {name: _map(Path(at)) for name, at in companions.items()},
        )
    except OSError as error:
        raise InferenceFailed("The files of the ONNX model cannot be read.") from error


def load(
    files: Bytes, options: LoadOptions, trial: Mapping[str, Array], watchdog: Watchdog
) -> LoadedModel:
    """Load the model with its uncertainty head.

    Without a resolved choice, its output is chosen on the trial rows, and the head's answers to
    them are compared with the model's own.

    Raises
    ------
    InvalidOnnxModel, InvalidConfig
        If the model cannot be served, or not as the caller wants.
    InvalidInput
        If the trial rows do not suit it.
    """
    opened = [OnnxFile(data, files.companions, options, watchdog) for data in files.onnx_models]
    if len(opened) > 1:
        return load_ensemble(opened, options, trial)
    if options.plan(ENSEMBLE) is not None:
        return load_stochastic(opened[0], options, trial)
    return load_single(opened[0], options, trial)


def _map(path: Path) -> memoryview:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
