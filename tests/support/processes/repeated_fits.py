"""Fits that tests repeat: a child fits the same records with the same options once a run."""

import hashlib
import uuid
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np

from howsure.statistics.fit.result import Fit
from service.runner.fitter import Fitter
from service.runner.messages.fits import FitRequest, fit_arrays
from service.runner.messages.packed import packed, unpacked


class RepeatedFits(Fitter):
    """A `Fitter` that returns what a child has returned for the same request, with its progress.

    Most tests that calibrate need one of a few calibrations; `runner/test_fitter.py` tests the
    process that fits. All workers share the files of ``folder``.
    """

    folder: Path

    def fit(self, records, options, *, evaluation, n_classes, on_progress):
        sets = {"calibration": records, "evaluation": evaluation}
        path = self.folder / self._key(
            fit_arrays(FitRequest(options, n_classes, self.sandbox), sets)
        )
        with suppress(FileNotFoundError):
            fit, steps = msgspec.msgpack.decode(path.read_bytes())
            for step in steps:
                on_progress(*step)
            return unpacked(np.frombuffer(fit, np.uint8), Fit)
        steps = []

        def tell(*step):
            steps.append(step)
            on_progress(*step)

        sets = {"evaluation": evaluation, "n_classes": n_classes, "on_progress": tell}
        fit = super().fit(records, options, **sets)
        written = path.with_suffix(f".{uuid.uuid4().hex}")
        written.write_bytes(msgspec.msgpack.encode((packed(fit).tobytes(), steps)))
        written.rename(path)
        return fit

    def _key(self, request):
        digest = hashlib.sha256(repr(self.timeout).encode())
        for name, array in request.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        return digest.hexdigest()
