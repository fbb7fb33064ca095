"""Outputs of a model and labels, as a program has them: arrays, lists or frames; their records."""

import hashlib
from collections.abc import Hashable, Sequence
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from howsure.outputs import (
    OutputKind,
    are_distributions,
    are_percentages,
    broken_rule,
    log_scores,
)
from howsure.statistics.arrays import as_labels
from howsure.statistics.fit.options import FitOptions
from howsure.statistics.records.build import build_records
from howsure.statistics.records.order import tie_keys
from howsure.statistics.records.pairs import are_probabilities, build_pair_records, pair_rows
from howsure.statistics.records.records import Records
from howsure.statistics.softmax import BINARY

# `scores` are one number a sample, for an answer that was right or wrong.
AnyKind: TypeAlias = OutputKind | Literal["scores"]
SCORES: Literal["scores"] = "scores"
KINDS = ("logits", "probabilities", SCORES)
MATRIX = 2  # dimensions


def as_outputs(
    outputs: ArrayLike, kind: AnyKind, n_columns: int | None = None
) -> NDArray[np.floating]:
    """Return outputs as an array: (n_samples, n_classes), of scores (n_samples, 1).

    ``n_columns`` are those that were fitted.

    Raises
    ------
    ValueError
        If they break a rule of their kind; the message names the row.
    """
    values = _as_numbers(outputs, kind)
    is_scores = kind == SCORES
    if is_scores and values.ndim == 1:
        values = values[:, np.newaxis]
    is_matrix = values.ndim == MATRIX
    is_wide = is_matrix and (values.shape[1] == 1 if is_scores else values.shape[1] >= BINARY)
    if not is_wide or n_columns not in (None, values.shape[1]):
        expected = "n_samples" if is_scores else f"n_samples, {n_columns or 'n_classes'}"
        message = f"{kind} must have shape ({expected}), not {np.shape(outputs)}"
        if is_matrix and n_columns is not None:  # as scikit-learn says it
            message += (
                f": X has {values.shape[1]} features, but Calibrator is expecting {n_columns} "
                "features as input"
            )
        raise ValueError(message)
    # The rule of scores is that of logits: they are finite.
    broken = broken_rule(values, "logits" if kind == SCORES else kind)
    if broken is not None:
        column = "" if broken.column is None or is_scores else f"[{broken.column}]"
        raise ValueError(f"{kind}[{broken.row}]{column}: {broken.rule}")
    if kind == "logits" and (are_distributions(values) or are_percentages(values)):
        raise ValueError(
            "logits: these are numbers that sum to 1, or 100, in each row; for probabilities "
            'make Calibrator(kind="probabilities"), and divide percentages by 100'
        )
    return values


def _as_numbers(outputs: ArrayLike, kind: AnyKind) -> NDArray[np.floating]:
    if hasattr(outputs, "toarray"):
        raise TypeError(f"{kind} must be dense, not a sparse matrix: call toarray() on it")
    values = np.asarray(outputs)
    if values.dtype.kind == "c":
        raise ValueError(f"{kind} must be real. Complex data not supported")
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def column_names(outputs: object) -> tuple[str, ...] | None:
    """Return the names of a frame's columns, if all are text."""
    names = tuple(getattr(outputs, "columns", ()))
    return cast("tuple[str, ...]", names) if names and {*map(type, names)} == {str} else None


def as_indices(labels: ArrayLike, classes: Sequence[Hashable] | None) -> NDArray[np.generic]:
    """Return the columns of labels: their places among ``classes``, if these have names.

    Raises
    ------
    ValueError
        If a label is none of the classes, or there are names and no classes.
    """
    values = np.asarray(labels)
    if values.ndim == MATRIX and values.shape[1] == 1:
        values = values[:, 0]
    if classes is None:
        if values.dtype.kind in "USO":
            raise ValueError(
                "labels are names: tell Calibrator(classes=...) the class of each column, such as "
                "classes_ of the classifier"
            )
        return values
    places = {label: place for place, label in enumerate(np.asarray(classes).tolist())}
    unknown = [label for label in values.tolist() if label not in places]
    if unknown:
        raise ValueError(f"labels must be among classes, {list(places)[:10]}, not {unknown[0]!r}")
    return np.array([places[label] for label in values.tolist()], np.int64)


def class_labels(classes: Sequence[Hashable] | None, n_classes: int) -> Sequence[Hashable]:
    """Return the class of each column; by default its number.

    Raises
    ------
    ValueError
        If ``classes`` do not name each column once.
    """
    if classes is None:
        return range(n_classes)
    if len(set(classes)) != n_classes or len(classes) != n_classes:
        raise ValueError(
            f"classes must name each of {n_classes} columns once, not {list(classes)[:10]}"
        )
    return classes


def labelled_records(
    options: FitOptions,
    kind: AnyKind,
    classes: Sequence[Hashable] | None,
    threshold: float | None,
    values: NDArray[np.floating],
    labels: ArrayLike,
) -> Records:
    """Make one record per sample, for the events and the seed of a fit.

    Parameters
    ----------
    classes : sequence, optional
        The class of each column, as labels have it.
    threshold : float, optional
        Decision threshold of two classes.
    values : ndarray of float, shape (n_samples, n_classes)
        As `as_outputs` returns them.
    labels : array_like, shape (n_samples,)
        Of scores, whether each answer was right.

    Raises
    ------
    ValueError
        If labels break a rule.
    """
    if kind == SCORES:
        correct = np.asarray(labels)
        if correct.shape != (len(values),) or not np.isin(correct, (0, 1)).all():
            raise ValueError("labels must say of each score whether the answer was right")
        scores = values[:, 0].astype(np.float64)
        return build_pair_records(
            pair_rows(scores, probabilities=are_probabilities(scores)),
            correct.astype(np.bool_),
            (-scores).astype(np.float32),
            seed=options.seed,
        )
    return build_records(
        log_scores(values, kind),
        as_labels(as_indices(labels, classes), n_samples=len(values), n_classes=values.shape[1]),
        tie_keys=tie_keys(values, options.seed),
        top_k=options.top_k,
        logits=kind == "logits",
        threshold=threshold,
    )


def sha256_of(*arrays: NDArray[np.generic]) -> str:
    """Return a digest of numbers and their shapes."""
    digest = hashlib.sha256()
    for values in arrays:
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
