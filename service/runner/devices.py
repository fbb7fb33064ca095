"""The processors and devices that models run on, and which model runs on which device."""

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from service.errors import InferenceFailed, OnnxModelCrashed
from service.runner.messages.convert import FieldError, convert
from service.runner.messages.frames import Kind
from service.runner.spawner import Spawner

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
UNIFIED = "0::"


def usable_cpus() -> int:
    """Return the processors that affinity and the container's quota allow, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cgroup_quota(CGROUPS, _own_group())
    return max(1, min(allowed or 1, int(quota) if quota else allowed or 1))


def cgroup_quota(root: Path, group: str) -> float | None:
    """Return the smallest quota, in processors, of a cgroup (version 2) and its ancestors."""
    quotas: list[float] = []
    folder = root / group.lstrip("/")
    for level in (folder, *folder.parents):
        quotas.extend(_quota(level / "cpu.max"))
        if level == root:
            break
    return min(quotas, default=None)


def _quota(file: Path) -> list[float]:
    try:
        most, period = file.read_text().split()
        return [] if most == "max" else [int(most) / int(period)]
    except (OSError, ValueError):
        return []


def _own_group() -> str:
    try:
        lines = OWN_CGROUP.read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix(UNIFIED) for line in lines if line.startswith(UNIFIED)), "")


CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"
PROBE_SECONDS = 120.0


@dataclass(frozen=True)
class Device:
    """A device that works: ``cpu`` or ``cuda:N``, and why it was chosen."""

    name: str
    provider: str
    reason: str


class DeviceFinder:
    """Probes the devices once, at the first call; safe to use from many threads."""

    def __init__(self, requested: str, spawner: Spawner) -> None:
        self._requested = requested.split(",")
        self._spawner = spawner
        self._lock = threading.Lock()
        self._found: tuple[Device, ...] | InferenceFailed | None = None

    def devices(self) -> tuple[Device, ...]:
        """Return the devices in the requested order, at least one.

        Raises
        ------
        InferenceFailed, Overloaded
            As `probe_device`, for the first device that cannot be used. After InferenceFailed it
            is not probed again: a health check may ask each second.
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


def probe_device(requested: str, spawner: Spawner) -> Device:
    """Return the device for ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    CUDA is probed in a child process, since its driver may crash; ``auto`` then means the CPU.

    Raises
    ------
    InferenceFailed
        If CUDA was requested by name and cannot be used.
    Overloaded
        If no child process can be started now.
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
    with closing(spawner.take()) as process:
        try:
            answer = process.call(Kind.PROBE, {"device": name}, timeout=PROBE_SECONDS)
            return convert(answer.fields.get("reason"), str)
        except (OnnxModelCrashed, FieldError):
            return "the process that tried it died"
        except InferenceFailed:
            return "the process that tried it did not come back"


class Placement:
    """Spreads models over devices by the memory they take; safe to use from many threads.

    Parameters
    ----------
    devices
        Returns the devices, the same at each call; it may take time, and raise.
    """

    def __init__(self, devices: Callable[[], Sequence[Device]]) -> None:
        self._devices = devices
        self._lock = threading.Lock()
        # The position of each model's device, and the model's bytes.
        self._placed: dict[Hashable, tuple[int, int]] = {}

    def place(self, key: Hashable, n_bytes: int) -> Device:
        """Return the device for a model of this size, and count it there.

        It is the device with the least memory taken, then with the fewest models, then the first.
        A model that has a device keeps it. Raises as ``devices``.
        """
        devices = self._devices()
        with self._lock:
            device, _ = self._placed.get(key) or (self._emptiest(len(devices)), 0)
            self._placed[key] = device, n_bytes
            return devices[device]

    def resize(self, key: Hashable, n_bytes: int) -> None:
        """Change the size of a model; nothing happens if the model has no device."""
        with self._lock:
            if key in self._placed:
                self._placed[key] = self._placed[key][0], n_bytes

    def remove(self, key: Hashable) -> None:
        """Forget an unloaded model; nothing happens if the model has no device."""
        with self._lock:
            self._placed.pop(key, None)

    def _emptiest(self, n_devices: int) -> int:
        placed = list(self._placed.values())
        taken = [[n for device, n in placed if device == own] for own in range(n_devices)]
        return min(range(n_devices), key=lambda device: (sum(taken[device]), len(taken[device])))
