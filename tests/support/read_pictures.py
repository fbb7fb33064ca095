"""Read a set of pictures to its end; print how many there were, and the most memory it took."""

import sys
from pathlib import Path

from service.child.reading.open_set import open_dataset
from service.runner.messages.limits import DatasetLimits
from service.runner.messages.preprocessing import Preprocessing
from service.runner.messages.reading import Reading


def main() -> None:
    """Read the file that is named."""
    with open_dataset(
        Path(sys.argv[1]),
        location="calibration",
        limits=DatasetLimits(),
        reading=Reading(preprocessing=Preprocessing()),
    ) as dataset:
        n_read = sum(len(batch.labels) for batch in dataset.batches(64))
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    sys.stdout.write(f"{n_read} {int(peak) * 1024}\n")


if __name__ == "__main__":
    main()
