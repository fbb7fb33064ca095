"""Which device ONNX models run on: the one that was tried, not the one that is listed."""

from dataclasses import dataclass

from service.errors import InferenceFailed, OnnxModelCrashed
from service.runner.fields import FieldError, text
from service.runner.frames import Kind
from service.runner.spawner import Spawner

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
PROBE_SECONDS = 120.0


@dataclass(frozen=True)
class Device:
    """A device that works: ``cpu`` or ``cuda:N``, and why it was taken."""

    name: str
    provider: str
    reason: str


def probe_device(requested: str, spawner: Spawner) -> Device:
    """Return the device for ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    CUDA is tried out in a child process, which may die of its driver; ``auto`` then means the CPU.

    Raises
    ------
    InferenceFailed
        If CUDA was asked for by name and cannot be used.
    Overloaded
        If no child process can be started at this time.
    """
    if requested == "cpu":
        return Device("cpu", CPU_PROVIDER, "the CPU was asked for")
    name = requested if requested.startswith("cuda:") else "cuda:0"
    reason = _why_not(name, spawner)
    if not reason:
        return Device(name, CUDA_PROVIDER, "CUDA was tried and works")
    if requested == "auto":
        return Device("cpu", CPU_PROVIDER, f"CUDA is not usable: {reason}")
    raise InferenceFailed(f"The device {requested} was asked for and is not usable: {reason}.")


def _why_not(name: str, spawner: Spawner) -> str:
    process = spawner.take()
    try:
        answer = process.call(Kind.PROBE, {"device": name}, timeout=PROBE_SECONDS)
        return text(answer.fields.get("reason"))
    except (OnnxModelCrashed, FieldError):
        return "the process that tried it died"
    except InferenceFailed:
        return "the process that tried it did not come back"
    finally:
        process.close()
