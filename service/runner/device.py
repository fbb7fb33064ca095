"""Which device ONNX models run on: the one that was tried, not the one that is listed."""

import re
import threading
from dataclasses import dataclass

from service.errors import InferenceFailed, OnnxModelCrashed
from service.runner.fields import FieldError, text
from service.runner.frames import Kind
from service.runner.spawner import Spawner

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
PROBE_SECONDS = 120.0
ALONE = ("auto", "cpu", "cuda")
NUMBERED = re.compile(r"cuda:(0|[1-9][0-9]{0,3})")


@dataclass(frozen=True)
class Device:
    """A device that works: ``cpu`` or ``cuda:N``, and why it was taken."""

    name: str
    provider: str
    reason: str


class DeviceFinder:
    """Finds out the devices once, at the first call, for all threads."""

    def __init__(self, requested: str, spawner: Spawner) -> None:
        self._requested = requested_devices(requested)
        self._spawner = spawner
        self._lock = threading.Lock()
        self._found: tuple[Device, ...] | InferenceFailed | None = None

    def device(self) -> Device:
        """Return the first device.

        Raises
        ------
        InferenceFailed, Overloaded
            As `devices`.
        """
        return self.devices()[0]

    def devices(self) -> tuple[Device, ...]:
        """Return the devices in the order in which they were asked for, at least one.

        Raises
        ------
        InferenceFailed, Overloaded
            As `probe_device`, of the first that cannot be used; the former is not tried again, for
            a health check may ask each second.
        """
        with self._lock:
            if self._found is None:
                try:
                    self._found = tuple(
                        probe_device(name, self._spawner) for name in self._requested
                    )
                except InferenceFailed as error:
                    self._found = error
            if isinstance(self._found, InferenceFailed):
                raise InferenceFailed(self._found.message)
            return self._found


def requested_devices(requested: str) -> tuple[str, ...]:
    """Return the names in ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``cuda:0,cuda:1,…``.

    Raises
    ------
    ValueError
        If it is none of these, or names a device twice.
    """
    names = tuple(requested.split(","))
    several = len(names) > 1
    if any(not NUMBERED.fullmatch(name) and (several or name not in ALONE) for name in names):
        raise ValueError(
            f"device must be auto, cpu, cuda, cuda:N or a list as cuda:0,cuda:1, not {requested!r}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"device must name each device once, not {requested!r}")
    return names


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
