"""How a measure that runs an ONNX model more than once is to be made: plain data, to be stored."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from service.core.measures import PERTURBATIONS
from service.runner.fields import FieldError, integer, items, number, text

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
        In `service.core.measures.PERTURBATIONS`.
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
    if measure not in PERTURBATIONS:
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
