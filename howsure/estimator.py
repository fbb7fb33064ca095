"""Conventions of scikit-learn: parameters, names of columns, tags, and errors before the fit."""

import inspect
from typing import Any, Self

import numpy as np

from howsure.labelled_outputs import column_names


class NotFittedError(ValueError, AttributeError):
    """A calibrator was asked before it was fitted; named and typed as scikit-learn's."""


class Estimator:
    """An estimator whose parameters are those of its constructor; ``document_`` is its fit."""

    # The signature is that of scikit-learn.
    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002
        """Return the parameters, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - parameters of any type
        """Set parameters.

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        names = tuple(self.get_params())
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"there is no parameter {name!r}; there are {names}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """Return the parameters that differ from their defaults."""
        defaults = inspect.signature(type(self)).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name == "kind" or value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether it can answer."""
        return hasattr(self, "document_")

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn is optional
        """Tell scikit-learn what it is: a classifier of the outputs of another."""
        from sklearn.utils import (  # type: ignore[import-untyped]  # noqa: PLC0415
            ClassifierTags,
            Tags,
            TargetTags,
        )

        return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags())

    def _require(self, attribute: str) -> None:
        if hasattr(self, attribute):
            return
        if hasattr(self, "document_"):
            raise NotFittedError(
                "This calibrator was loaded from a bins document, which has tables and thresholds, "
                "and neither scores nor a report: fit(outputs, labels) makes them."
            )
        raise NotFittedError("This calibrator is not fitted: call fit(outputs, labels) first.")

    def _remember_names(self, outputs: object) -> None:
        vars(self).pop("feature_names_in_", None)  # those of an earlier fit
        names = column_names(outputs)
        if names is not None:
            self.feature_names_in_ = np.array(names, object)

    def _check_names(self, outputs: object) -> None:
        names, fitted = column_names(outputs), getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None and list(names) != list(fitted):
            raise ValueError(
                "The feature names should match those that were passed during fit: expected "
                f"{list(fitted)}, in this order, not {list(names)}"
            )
