"""Export small HistGradientBoostingClassifiers of scikit-learn, with their own probabilities.

Not run by the tests: skl2onnx 1.20 cannot export this kind from scikit-learn 1.9, so the files are
committed. To make them again::

    python -m venv /tmp/histogram && /tmp/histogram/bin/pip install "numpy<2" \
        scikit-learn==1.5.2 skl2onnx==1.17.0 onnx==1.16.2 protobuf==4.25.3
    /tmp/histogram/bin/python examples/model_files/make_histogram_models.py

The data are scikit-learn's irises; the binary models tell the first kind from the others.
"""

from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier

FOLDER = Path(__file__).parents[2] / "tests/data/onnx"

if __name__ == "__main__":
    irises, kinds = load_iris(return_X_y=True)
    irises = irises.astype(np.float32)
    found = {"rows": irises}
    for kind, labels in (("three", kinds), ("binary", (kinds > 0).astype(int))):
        model = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4).fit(irises, labels)
        found[f"histogram_{kind}"] = model.predict_proba(irises)
        for name, zipmap in (("maps", True), ("matrix", False)):
            options = {"zipmap": zipmap}
            exported = to_onnx(model, irises[:1], options=options, target_opset=15)
            path = FOLDER / f"histogram_{kind}_{name}.onnx"
            path.write_bytes(exported.SerializeToString())
    np.savez_compressed(FOLDER / "histogram_references.npz", **found)
