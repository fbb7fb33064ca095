"""Sessions of ONNX Runtime: how a graph is loaded and run on a device."""

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from service.child.onnx.watchdog import Watchdog
from service.errors import InferenceFailed, InvalidInput, InvalidOnnxModel, ModelRule
from service.runner.messages.frames import Array


def bound_run(
    session: ort.InferenceSession,
    outputs: Sequence[str],
    feeds: Mapping[str, Array],
    options: ort.RunOptions,
) -> list[Array]:
    """Return the outputs on the CPU; each input is copied once, to the device that reads it.

    Each run binds everything again: outputs that stay bound would be overwritten by the next run,
    and could not take another number of rows.
    """
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, np.asarray(array, order="C"))
    for name in outputs:
        binding.bind_output(name)
    session.run_with_iobinding(binding, options)
    return list(binding.copy_outputs_to_cpu())


VERSIONS = {
    "numpy": np.__version__,
    "onnx": onnx.__version__,
    "onnxruntime": ort.__version__,
}
CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
ERRORS_ONLY = 3
MAX_NOTE = 1000
# Function names in other errors contain "allocator": it must not match.
NO_MEMORY = re.compile(r"bad_alloc\b|alloc_failed|allocat(e|ion)\b|out of memory", re.IGNORECASE)
IMAGE_AXES = 4
MOST_CHANNELS = 4
# The axis of the channels as sent, the axes in the model's order, and the names of both.
LAYOUTS = (
    (3, (0, 3, 1, 2), "channel-last", "nchw"),
    (1, (0, 2, 3, 1), "channel-first", "nhwc"),
)
RUNNING = re.compile(r"while running (\w+) node")
NOT_LOADED = (
    "ONNX Runtime cannot load it: a node, a type or a shape is invalid; load it with "
    "ONNX Runtime where you export it, to see the details"
)
NOT_IMPLEMENTED = (
    "it uses an operator or a data type that ONNX Runtime does not implement here; export it with "
    "another opset or type"
)
MORE_MEMORY = "it needs more memory than a model may use; send a smaller model"


class OnnxSession:
    """A loaded graph.

    Parameters
    ----------
    data
        The graph, as bytes: a path would let the graph read the files beside it.
    weights
        Contents of companion files by name; they live as long as the session.
    device
        ``cpu`` or ``cuda:N``.
    threads
        Threads of one run.

    Raises
    ------
    InvalidOnnxModel
        If the graph cannot be loaded.
    InferenceFailed
        If the device cannot be used for it.

    Attributes
    ----------
    provider
        The execution provider that is really used.
    output_names
        Names of the graph's outputs.
    """

    def __init__(
        self,
        data: bytes,
        *,
        weights: Mapping[str, memoryview],
        device: str,
        threads: int,
        watchdog: Watchdog,
    ) -> None:
        self._weights = dict(weights)
        self._watchdog = watchdog
        options = session_options(threads)
        if device != "cpu":
            preload_cuda()
        if weights:
            options.add_external_initializers_from_files_in_memory(
                list(weights), list(weights.values()), [len(part) for part in weights.values()]
            )
        try:
            self._session = ort.InferenceSession(
                data,
                options,
                providers=providers(device),
                enable_fallback=0,
                read_config_from_model=0,
            )
        except Exception as error:
            # An uploaded file can raise anything, a UnicodeDecodeError for instance.
            raise _load_failure(error) from error
        self.provider = str(self._session.get_providers()[0])
        self.output_names = [str(output.name) for output in self._session.get_outputs()]
        if device != "cpu" and self.provider != CUDA:
            # The runtime fell back to the CPU silently: its numbers would not be those of the
            # device that the calibration reports.
            raise InferenceFailed(
                f"The device {device} could not be used for the ONNX model: its memory may be full."
            )
        # `InferenceSession.run` calls this after checks in Python, a tenth of a small run.
        self._run = self._session._sess.run  # noqa: SLF001 - there is no public way
        # On the CPU, binding costs more than it saves.
        self._is_bound = self.provider == CUDA

    def run(
        self, outputs: Sequence[str], feeds: Mapping[str, Array], *, place: str
    ) -> dict[str, Array]:
        """Run the graph on a batch and return the outputs by name.

        ``place`` is the name of the rows in errors.

        Raises
        ------
        DeadlineExceeded
            If the request exceeds its time.
        InvalidInput
            If the graph does not take these rows, or there is not enough memory.
        """
        answers = self.run_all(list(outputs), dict(feeds), place=place)
        return {name: np.asarray(answer) for name, answer in zip(outputs, answers, strict=True)}

    def run_all(self, outputs: list[str], feeds: dict[str, Array], *, place: str) -> list[Array]:
        """Do the same as `run`, but return the outputs as the runtime gives them."""
        options = self._watchdog.begin()
        try:
            if self._is_bound:
                return bound_run(self._session, outputs, feeds, options)
            answers: list[Array] = self._run(outputs, feeds, options)
        except Exception as error:
            self._watchdog.check()
            advice = "" if _lacks_memory(error) else self._layout_advice(outputs, feeds, options)
            raise _run_failure(error, place, advice) from error
        finally:
            self._watchdog.end()
        return answers

    def _layout_advice(
        self, outputs: list[str], feeds: dict[str, Array], options: ort.RunOptions
    ) -> str:
        """Return how to arrange the axes of pictures, if the graph takes them in another layout.

        A graph whose shapes are dynamic fails only at one of its nodes.
        """
        name = next((name for name, array in feeds.items() if array.ndim == IMAGE_AXES), None)
        if name is None:
            return ""
        for last, axes, seen, layout in LAYOUTS:
            if feeds[name].shape[last] > MOST_CHANNELS:
                continue
            with suppress(Exception):
                self._run(outputs, {**feeds, name: feeds[name].transpose(axes)}, options)
                return (
                    f", but it takes them in another layout: they look {seen}, "
                    f"{['rows', *feeds[name].shape[1:]]}; write x.transpose{axes}, or for pictures "
                    f"set preprocessing.layout to {layout}"
                ).replace("'", "")
        return ""


def session_options(threads: int) -> ort.SessionOptions:
    """Return the options of every session."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    # Otherwise it looks for its own format where the name of a producer may be.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    # Threads that spin between two requests would slow down the children of other models.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


@cache
def preload_cuda() -> None:
    """Load the libraries of CUDA and cuDNN that were installed as packages, once a process.

    The loader does not search their folders: without this, a session falls back to the CPU.
    """
    ort.preload_dlls()


def providers(device: str) -> list[str | tuple[str, dict[str, str]]]:
    """Return the execution providers of a device, the preferred one first."""
    if device == "cpu":
        return [CPU]
    # TF32 would cut logits to 10 bits. An exhaustive search for convolution algorithms, repeated
    # for each batch size, would make answers depend on the batch size.
    settings = {
        "device_id": device.removeprefix("cuda:"),
        "use_tf32": "0",
        "cudnn_conv_algo_search": "HEURISTIC",
    }
    return [(CUDA, settings), CPU]


def _load_failure(error: Exception) -> InvalidOnnxModel:
    note(error)
    if _lacks_memory(error):
        return InvalidOnnxModel.because(ModelRule.TOO_MUCH_MEMORY, MORE_MEMORY)
    if type(error).__name__ == "NotImplemented":
        return InvalidOnnxModel.because(ModelRule.NOT_IMPLEMENTED, NOT_IMPLEMENTED)
    return InvalidOnnxModel.because(ModelRule.NOT_LOADED, NOT_LOADED)


def _run_failure(error: Exception, place: str, advice: str) -> InvalidInput:
    note(error)
    if _lacks_memory(error):
        return InvalidInput.at(
            place,
            "the ONNX model needs more memory for these rows than it is given",
            rule=ModelRule.TOO_MUCH_MEMORY,
        )
    node = RUNNING.search(str(error))
    reason = f"its {node[1]} node failed" if node else "ONNX Runtime refused to run it"
    return InvalidInput.at(
        place,
        f"the ONNX model does not take these rows: {reason}{advice}",
        rule=ModelRule.RUN_FAILED,
    )


def _lacks_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or NO_MEMORY.search(str(error)) is not None


def note(error: BaseException) -> None:
    """Print the runtime's message for the log; it may contain paths, so answers never have it."""
    text = f"{type(error).__name__}: {error}"[:MAX_NOTE].replace("\n", " ")
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


SIZE = 64


def probe_cuda(device: str) -> str:
    """Return why ``device`` (``cuda:N``) cannot be used, or nothing if it can.

    The library's list of providers depends on its build, not on this machine, and a session falls
    back to the CPU silently unless that is forbidden.
    """
    if CUDA not in ort.get_available_providers():
        return "this build of ONNX Runtime has no CUDA"
    preload_cuda()
    options = session_options(1)
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    matrix = np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE) / SIZE**2
    try:
        session = ort.InferenceSession(
            _one_node(), options, providers=providers(device)[:1], enable_fallback=0
        )
        product = session.run(None, {"x": matrix})[0]
    except Exception as error:  # noqa: BLE001 - a driver can raise anything
        note(error)
        return "ONNX Runtime could not use it; its driver, CUDA 13 or cuDNN 9 may be missing"
    if not np.allclose(product, matrix @ matrix, rtol=1e-3):
        return "its product of two matrices is wrong"
    return ""


def _one_node() -> bytes:
    shape = [SIZE, SIZE]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "x"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())
