"""The stored records of sets that calibrations were judged on."""

import uuid
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeVar

import numpy as np

import models
from howsure.statistics.comparison import Served, are_same_samples
from howsure.statistics.records.records import Int32s, concatenate
from service.jobs.record_set import judging_parts, load_labels
from service.reports.comparison.labelled_sets import JudgedSet
from service.storage.evaluations import EvaluationRepository
from service.storage.fit_results import core_table, read_fitted
from service.workspace import Workspace

Found = TypeVar("Found")
Judged = models.Calibration | models.Evaluation
# The first calibration's, which every other one is compared with, and that of the other one.
MOST_KEPT = 2


class StoredSets:
    """Reads the records of one tenant's sets, each only if a comparison needs it.

    Its methods raise NotFound if the calibration or the evaluation was deleted meanwhile.
    """

    def __init__(self, workspace: Workspace, tenant_id: uuid.UUID) -> None:
        self._workspace = workspace
        self._tenant_id = tenant_id
        self._labels = cache(self._read_labels)
        # Records are a few hundred bytes per sample.
        self.served = lru_cache(MOST_KEPT)(self._read_served)

    def are_same(self, one: JudgedSet, other: JudgedSet) -> bool:
        """Tell whether two sets have the same samples in the same order.

        Equal files may have labels of their own, beside them.
        """
        if one.n_samples != other.n_samples:
            return False
        labels = self._labels(one), self._labels(other)
        if one.sha256 == other.sha256:
            return bool(np.array_equal(*labels))
        return are_same_samples(*labels)

    def _read_labels(self, one: JudgedSet) -> Int32s:
        role: models.ArtifactRole = "records" if one.kind == "calibration" else "evaluation_records"
        return self._read(one, lambda row, _: load_labels(self._workspace, row.artifacts, role))

    def _read_served(self, one: JudgedSet) -> dict[str, Served]:
        """Return the served tables of the calibration with its records of the set, by event."""

        def load(row: Judged, tables: Sequence[models.BinTable]) -> dict[str, Served]:
            parts = judging_parts(self._workspace, row.artifacts, tables)
            records = concatenate(parts, n_samples=one.n_samples)
            return {str(t.k): Served(core_table(t), t.column, records) for t in tables}

        return self._read(one, load)

    def _read(
        self, one: JudgedSet, load: Callable[[Judged, Sequence[models.BinTable]], Found]
    ) -> Found:
        with self._workspace.database.reading(self._tenant_id) as session:
            fitted = read_fitted(session, self._tenant_id, str(one.calibration_id))
            row: Judged = fitted.row
            if one.name is not None:
                evaluations = EvaluationRepository(session, self._tenant_id)
                row = evaluations.get(one.calibration_id, one.name)
        return load(row, fitted.served)
