"""Predictions: the answers to requests, as arrays."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from howsure.client.errors import HowsureError
from howsure.client.frames import Frame, data_frame, html_table
from howsure.client.request import Answer, Request, address_of
from howsure.client.resources import Calibration, reference_of
from howsure.client.rows import JSON
from howsure.client.transport import Sender
from howsure.client.uploads import Arrays, read_npz

Array = NDArray[Any]
ABSTAIN = "abstain_"
# In notebooks.
SHOWN_ROWS = 10


@dataclass(frozen=True)
class EventPredictions:
    """Answers to one event: the label is among the k most probable classes.

    Attributes
    ----------
    probability, lower, upper : float32, shape (n,)
        The calibrated probability that the event holds, and its interval.
    uncertainty : float32, shape (n,)
        The value of the measure; larger is more uncertain.
    bin : int64, shape (n,)
        The bin of that value; 0 is the most certain.
    """

    probability: Array
    lower: Array
    upper: Array
    uncertainty: Array
    bin: Array


@dataclass(frozen=True, repr=False)
class Predictions:
    """Predictions of n rows, in their order.

    Attributes
    ----------
    arrays
        All arrays, by the names of docs/http.md; ``predictions["top1_probability"]`` is one.
    calibration_id, reference
        The calibration that answered: its id, and ``name@version``.
    classes
        Names of all classes, by index.
    by_position
        Whether the calibration has column names and the rows came without: they were read in the
        order of the calibration table.
    index
        The index of the data frame or series of pandas that was sent; None for other rows.
    """

    arrays: Arrays
    calibration_id: str
    reference: str
    classes: Sequence[str]
    by_position: bool = False
    index: Any = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values())))

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __repr__(self) -> str:
        return f"Predictions({self.reference}, {len(self)} rows, {', '.join(self.arrays)})"

    def _repr_html_(self) -> str:
        shown = min(len(self), SHOWN_ROWS)
        columns = {"row": [str(row) for row in range(shown)], "label": self.label[:shown]}
        for k, event in self.events.items():
            columns[f"Top-{k}"] = [
                f"{event.probability[row]:.3f} ({event.lower[row]:.3f} to {event.upper[row]:.3f})"
                for row in range(shown)
            ]
        for name, array in self.arrays.items():
            if array.dtype == np.bool_:
                columns[name] = ["yes" if flag else "" for flag in array[:shown]]
        more = f", the first {shown}" if len(self) > shown else ""
        return html_table(columns, f"{self.reference}: {len(self)} rows{more}")

    def to_pandas(self) -> Frame:
        """Return a data frame with a row each: the label, and the arrays by their names.

        An array of several values a row becomes several columns, ``topk_class_1`` and so on. It has
        the index of the data frame that was sent, so that ``frame.join`` puts each answer beside
        its row; ``rsuffix`` keeps a column ``label`` of the frame apart.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns: dict[str, Any] = {"label": self.label} if "class" in self.arrays else {}
        for name, array in self.arrays.items():
            if array.ndim == 1:
                columns[name] = array
            else:
                columns |= {f"{name}_{i}": values for i, values in enumerate(array.T, start=1)}
        return data_frame(columns, index=self.index)

    @property
    def class_(self) -> Array:
        """The most probable class: int64, shape (n,).

        Raises
        ------
        AttributeError
            If these are predictions for scores, which have no classes.
        """
        if "class" not in self.arrays:
            raise AttributeError("predictions for scores have no classes; use top1.probability")
        return self.arrays["class"]

    @property
    def label(self) -> list[str]:
        """The name of the most probable class."""
        return [self.classes[index] for index in self.class_]

    @property
    def topk_class(self) -> Array:
        """The most probable classes, at most five: int64, shape (n, m)."""
        return self.arrays["topk_class"]

    @property
    def topk_score(self) -> Array:
        """The model's own softmax of these classes, not calibrated: float32, shape (n, m)."""
        return self.arrays["topk_score"]

    @property
    def topk_probability(self) -> Array:
        """A probability of each of these classes, calibrated for the first: float32, shape (n, m).

        That of Top-1 for the first; the others share the rest in proportion to their scores.

        Raises
        ------
        KeyError
            If the calibration has no Top-1.
        """
        return self.arrays["topk_probability"]

    @property
    def events(self) -> Mapping[int, EventPredictions]:
        """All events of the calibration, by k."""
        found = (re.fullmatch(r"top(\d+)_probability", name) for name in self.arrays)
        return {k: self.event(k) for k in (int(match[1]) for match in found if match)}

    def event(self, k: int) -> EventPredictions:
        """Return one event.

        Raises
        ------
        KeyError
            If the calibration has no Top-k.
        """
        parts = ("probability", "lower", "upper", "uncertainty", "bin")
        return EventPredictions(*(self.arrays[f"top{k}_{part}"] for part in parts))

    @property
    def top1(self) -> EventPredictions:
        """The event that `class_` is right."""
        return self.event(1)

    @property
    def top5(self) -> EventPredictions:
        """The event that the label is among the five most probable classes."""
        return self.event(5)

    @property
    def out_of_distribution(self) -> Array | None:
        """Whether a row is less certain than nearly all calibration samples: bool, shape (n,)."""
        return self.arrays.get("out_of_distribution")

    @property
    def adversarial(self) -> Array | None:
        """Whether logits change fast near a row, as near attacks: bool, shape (n,); may be None."""
        return self.arrays.get("adversarial")

    @property
    def abstain(self) -> Mapping[str, Array]:
        """Whether to abstain from a row, by ``max_risk``: bool, shape (n,)."""
        return {
            name.removeprefix(ABSTAIN): array
            for name, array in self.arrays.items()
            if name.startswith(ABSTAIN)
        }

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of several answers, in order."""
        first = parts[0]
        if len(parts) == 1:
            return first
        arrays = {
            name: np.concatenate([part.arrays[name] for part in parts]) for name in first.arrays
        }
        return replace(first, arrays=arrays)


async def predict(
    sender: Sender,
    calibration: Calibration | str,
    requests: Iterable[Request],
    class_names: dict[str, tuple[str, ...]],
    seconds: float | None,
) -> Predictions:
    """Send all requests and join the answers; ``class_names`` caches class names by calibration."""
    reference, parts = reference_of(calibration), []
    timeout = {} if seconds is None else {"Timeout": f"{seconds:g}"}
    for request in requests:
        named = replace(request, headers={**request.headers, **timeout})
        if request.headers.get("Content-Type") == JSON:
            head = json.dumps({"calibration": reference})[:-1].encode()
            named = replace(named, content=head + b", " + (request.content or b"")[1:])
        else:
            named = replace(named, params={"calibration": reference})
        try:
            answer = await sender.send(named)
        except HowsureError as error:
            error.renumber_rows(request.first_row)
            raise
        served = _served_calibration(answer)
        # The same version answers all rows, even if a newer one appears meanwhile.
        reference = served["id"]
        if reference not in class_names:
            found = await sender.send(Request("GET", address_of(reference)))
            class_names[reference] = Calibration.of(found.json()).classes
        name = f"{served['name']}@{served['version']}"
        arrays, classes = read_npz(answer.content), class_names[reference]
        parts.append(Predictions(arrays, reference, name, classes, "columns" in served))
    return Predictions.joined(parts)


def _served_calibration(answer: Answer) -> dict[str, str]:
    """Return the calibration that answered, from the header of the response."""
    pairs = answer.headers["howsure-calibration"].split("; ")
    return dict(pair.split("=", 1) for pair in pairs)
