"""One run of a session on a device, its inputs and outputs bound to where they lie."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime as ort

from service.runner.frames import Array


def bound_run(
    session: ort.InferenceSession,
    outputs: Sequence[str],
    feeds: Mapping[str, Array],
    options: ort.RunOptions,
) -> list[Array]:
    """Return the outputs asked for, on the CPU; each input goes straight to where it is read.

    Everything is bound anew at each run: outputs that stay bound are filled again, under whoever
    holds them, and cannot take another number of rows.
    """
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, np.asarray(array, order="C"))
    for name in outputs:
        binding.bind_output(name)
    session.run_with_iobinding(binding, options)
    return list(binding.copy_outputs_to_cpu())
