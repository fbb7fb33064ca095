"""The example of sets that drift: each change grows with its intensity."""

from pathlib import Path
from runpy import run_path

import numpy as np

from service.cli.further_sets.manifest import read_manifest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "shift" / "make_shift.py"


def test_changes_grow_and_labels_stay(tmp_path: Path) -> None:
    manifest = run_path(str(SCRIPT))["write_sets"](tmp_path)
    sets = read_manifest(manifest, tmp_path)
    assert len(sets) == 31
    with np.load(sets[0].file) as plain:
        inputs, labels = plain["inputs"], plain["labels"]
    change: dict[str, list[float]] = {}
    for one in sets[1:]:
        with np.load(one.file) as arrays:
            assert np.array_equal(arrays["labels"], labels)
            assert 0.0 <= arrays["inputs"].min() <= arrays["inputs"].max() <= 16.0
            change.setdefault(one.type or "", []).append(np.abs(arrays["inputs"] - inputs).mean())
    assert {len(sizes) for sizes in change.values()} == {5}
    assert all(np.all(np.diff(sizes) > 0) for sizes in change.values())
