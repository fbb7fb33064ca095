"""The digits of the example as pictures, and its model as one that takes them."""

import io
from typing import Any

import httpx
import numpy as np
import onnx
from web_runtimes import ROOT

DIGITS = ROOT / "examples" / "digits"
SIDE = 8


def picture_model() -> bytes:
    """Return the example's model behind an input ``image``, uint8 of shape [N, 1, 8, 8]."""
    model = onnx.load(DIGITS / "model.onnx")
    (flat,) = model.graph.input
    kind = flat.type.tensor_type.elem_type
    image = onnx.helper.make_tensor_value_info("image", kind, ["N", 1, SIDE, SIDE])
    node = onnx.helper.make_node("Flatten", ["image"], [flat.name])
    model.graph.node.insert(0, node)
    del model.graph.input[:]
    model.graph.input.append(image)
    return model.SerializeToString()


def picture_set() -> tuple[np.ndarray, np.ndarray]:
    """Return the example's pictures, [600, 1, 8, 8], and their labels."""
    with np.load(DIGITS / "calibration.npz") as found:
        return found["inputs"].reshape(-1, 1, SIDE, SIDE), found["labels"]


def calibrate_pictures(client: httpx.Client, **config: Any) -> dict[str, Any]:
    """Calibrate them; return the calibration."""
    pictures, labels = picture_set()
    packed = io.BytesIO()
    np.savez(packed, image=pictures, labels=labels)
    files = [
        ("model", ("model.onnx", picture_model())),
        ("calibration", ("set.npz", packed.getvalue())),
        ("config", (None, httpx.Request("POST", "http://x", json=config).content)),
    ]
    made = client.post("/calibrate", files=files, headers={"Prefer": "wait=60"})
    assert made.json().get("status") == "succeeded", made.text
    return made.json()
