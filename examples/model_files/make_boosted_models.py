"""Export small boosted trees from LightGBM, XGBoost and CatBoost, with their own probabilities.

Not run by the tests, which need none of these libraries: the files are committed. To make them
again::

    python -m venv /tmp/boosted && /tmp/boosted/bin/pip install \
        lightgbm==4.7.0 xgboost==3.2.0 catboost==1.2.10 onnxmltools==1.16.0 skl2onnx==1.20.0
    /tmp/boosted/bin/python examples/model_files/make_boosted_models.py

The data are scikit-learn's irises; the binary models tell the first kind from the others.
"""

import warnings
from pathlib import Path

import catboost
import lightgbm
import numpy as np
import onnx
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from sklearn.datasets import load_iris

FOLDER = Path(__file__).parents[2] / "tests/data/onnx"
INPUTS = [("rows", FloatTensorType([None, 4]))]


def make(rows: np.ndarray, labels: np.ndarray, kind: str) -> dict[str, np.ndarray]:
    """Write the models of one kind and return the probabilities of each library."""
    light = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1).fit(rows, labels)
    for name, zipmap in (("maps", True), ("matrix", False)):
        onnx.save(
            onnxmltools.convert_lightgbm(
                light, initial_types=INPUTS, zipmap=zipmap, target_opset=15
            ),
            FOLDER / f"lightgbm_{kind}_{name}.onnx",
        )
    extreme = xgboost.XGBClassifier(n_estimators=3, max_depth=2).fit(rows, labels)
    onnx.save(
        onnxmltools.convert_xgboost(extreme, initial_types=INPUTS, target_opset=15),
        FOLDER / f"xgboost_{kind}_matrix.onnx",
    )
    loss = "Logloss" if kind == "binary" else "MultiClass"
    cat = catboost.CatBoostClassifier(iterations=3, depth=2, verbose=0, loss_function=loss)
    cat.fit(rows, labels)
    cat.save_model(str(FOLDER / f"catboost_{kind}_maps.onnx"), format="onnx")
    return {
        f"{name}_{kind}": model.predict_proba(rows)
        for name, model in (("lightgbm", light), ("xgboost", extreme), ("catboost", cat))
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    irises, kinds = load_iris(return_X_y=True)
    irises = irises.astype(np.float32)
    found = make(irises, kinds, "three") | make(irises, (kinds > 0).astype(int), "binary")
    np.savez_compressed(FOLDER / "boosted_references.npz", rows=irises, **found)
