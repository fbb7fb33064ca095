"""One run of a session on a device, its inputs and outputs bound to where they lie."""

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
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


CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
ERRORS_ONLY = 3
MAX_NOTE = 1000
# Not of the allocators that the names of functions in other errors hold.
NO_MEMORY = re.compile(r"bad_alloc\b|alloc_failed|allocat(e|ion)\b|out of memory", re.IGNORECASE)
RUNNING = re.compile(r"while running (\w+) node")
NOT_LOADED = (
    "ONNX Runtime cannot load it: a node, a type or a shape does not suit; load it with "
    "ONNX Runtime where you export it, which says more"
)
NOT_IMPLEMENTED = (
    "it uses an operator or a data type that ONNX Runtime does not implement here; export it with "
    "another opset or type"
)
MORE_MEMORY = "it needs more memory than it is given; send a smaller model"


class OnnxSession:
    """A loaded graph.

    Parameters
    ----------
    data
        The graph, as bytes: a path would let it read the files beside it.
    weights
        Contents of companion files by name; kept alive as long as the session.
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
            # A stranger's file raises what it can, a UnicodeDecodeError for instance.
            raise _load_failure(error) from error
        self.provider = str(self._session.get_providers()[0])
        self.output_names = [str(output.name) for output in self._session.get_outputs()]
        if device != "cpu" and self.provider != CUDA:
            # The runtime took the CPU without a word; the numbers of a table would not be those
            # of the device that it is said to be made on.
            raise InferenceFailed(
                f"The device {device} could not be used for the ONNX model: its memory may be full."
            )
        # What its `run` calls itself, but for checks in Python that cost a tenth of a small run.
        self._run = self._session._sess.run  # noqa: SLF001 - there is no other way to it
        # On the CPU to bind costs more than it saves.
        self._is_bound = self.provider == CUDA

    def run(
        self, outputs: Sequence[str], feeds: Mapping[str, Array], *, place: str
    ) -> dict[str, Array]:
        """Run the graph on a batch and return the outputs by name.

        ``place`` is what the rows are called in errors.

        Raises
        ------
        DeadlineExceeded
            If the request's time is over.
        InvalidInput
            If the graph does not take these rows, or there is not enough memory.
        """
        answers = self.run_all(list(outputs), dict(feeds), place=place)
        return {name: np.asarray(answer) for name, answer in zip(outputs, answers, strict=True)}

    def run_all(self, outputs: list[str], feeds: dict[str, Array], *, place: str) -> list[Array]:
        """Do what `run` does, but return the outputs as the runtime gives them."""
        options = self._watchdog.begin()
        try:
            if self._is_bound:
                return bound_run(self._session, outputs, feeds, options)
            answers: list[Array] = self._run(outputs, feeds, options)
        except Exception as error:
            self._watchdog.check()
            raise _run_failure(error, place) from error
        finally:
            self._watchdog.end()
        return answers


def session_options(threads: int) -> ort.SessionOptions:
    """Return the options of every session."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    # Otherwise it looks for its own format at a place where a producer's name may stand.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    # Threads that spin between two requests take the processor from the other models' children.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


@cache
def preload_cuda() -> None:
    """Load the libraries of CUDA and cuDNN that were installed as packages, once a process.

    They lie where the loader does not look: without this a session falls back to the CPU.
    """
    ort.preload_dlls()


def providers(device: str) -> list[str | tuple[str, dict[str, str]]]:
    """Return the execution providers of a device, by falling preference."""
    if device == "cpu":
        return [CPU]
    # TF32 would cut the logits to 10 bits, and trying every convolution algorithm anew for each
    # batch size would make the answer depend on it.
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


def _run_failure(error: Exception, place: str) -> InvalidInput:
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
        place, f"the ONNX model does not take these rows: {reason}", rule=ModelRule.RUN_FAILED
    )


def _lacks_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or NO_MEMORY.search(str(error)) is not None


def note(error: BaseException) -> None:
    """Print the runtime's own words for the log: they may hold paths, and never leave as answer."""
    text = f"{type(error).__name__}: {error}"[:MAX_NOTE].replace("\n", " ")
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


SIZE = 64


def probe_cuda(device: str) -> str:
    """Return why ``device`` (``cuda:N``) cannot be used, or nothing if it can.

    What the library lists as available says how it was built, not what this machine has; and a
    session falls back to the CPU without a word unless it is forbidden to.
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
    except Exception as error:  # noqa: BLE001 - whatever a driver raises means the same here
        note(error)
        return "ONNX Runtime could not use it; its driver, CUDA 13 or cuDNN 9 may be missing"
    if not np.allclose(product, matrix @ matrix, rtol=1e-3):
        return "it multiplied two matrices wrongly"
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
