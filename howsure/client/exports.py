"""The calibrated model as an ONNX file, with its files of external weights beside it."""

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from howsure.client.request import Request, address_of, plain_file
from howsure.client.resources import Calibration
from howsure.client.transport import Sender

# The part of an upload, and of a path, with external weights.
WEIGHTS = "model_data"


@dataclass(frozen=True)
class ExportedModel:
    """A calibrated model on disk.

    Attributes
    ----------
    path
        The ONNX file.
    beside
        Names of the files with external weights in its folder, which it needs.
    parity
        How its answers compare with the service's, as in ``Howsure-Parity``.
    """

    path: Path
    beside: Sequence[str]
    parity: str


async def export_model(sender: Sender, found: Calibration, to: Path | None) -> ExportedModel:
    """Write the model, by default under the name that the service gives it, then its weights.

    Raises
    ------
    ValueError
        If there is another file under the name of one with weights: the model would answer with it.
    """
    folder = Path() if to is None else to.parent
    files = found.resource["data"].get("files", {})
    names = [plain_file(name).name for name in files.get(WEIGHTS, ())]
    new = {folder / name: folder / f"{name}.new" for name in names}
    try:
        for target, unfinished in new.items():
            await sender.download(
                Request("GET", address_of(found.id, WEIGHTS, target.name)), unfinished
            )
            if target.exists() and not filecmp.cmp(target, unfinished, shallow=False):
                raise ValueError(
                    f"{target} has other weights than this calibration, and the exported model "
                    "needs that name: write it to another folder"
                )
        request = Request("GET", address_of(found.id, "model.onnx"), patient=True)
        path, answer = await sender.download(request, to)
        for target, unfinished in new.items():
            unfinished.replace(target)
    finally:
        for unfinished in new.values():
            unfinished.unlink(missing_ok=True)
    return ExportedModel(path, names, answer.headers["Howsure-Parity"])
