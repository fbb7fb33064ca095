"""Fits of services in this process: made in it, and the same records with the same options once."""

import hashlib
import uuid
from pathlib import Path

import numpy as np

from service.child.fitting import answer_fit
from service.runner.fitter import Fitter
from service.runner.messages.fits import RESULT, FitRequest, fit_arrays, fit_of


class RepeatedFits(Fitter):
    """A `Fitter` without a process, which is the subject of `runner/test_fitter.py` alone.

    All workers share the files of ``folder``.
    """

    folder: Path

    def fit(self, records, options, *, evaluation, n_classes, on_progress):
        sets = {"calibration": records, "evaluation": evaluation}
        request = FitRequest(options, n_classes, self.sandbox)
        arrays = fit_arrays(request, sets)
        digest = hashlib.sha256()
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        path = self.folder / digest.hexdigest()
        if path.exists():
            for done in range(total := len(options.top_k) * len(options.measures)):
                on_progress(done + 1, total)
        else:
            written = path.with_suffix(f".{uuid.uuid4().hex}")
            written.write_bytes(answer_fit(arrays, on_progress)[RESULT].tobytes())
            written.rename(path)
        fit = np.frombuffer(path.read_bytes(), np.uint8)
        assert fit.nbytes <= request.most_bytes(records.n_samples)
        return fit_of({RESULT: fit}, request, records.n_samples)
