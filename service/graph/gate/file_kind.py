"""What a file is that is no ONNX model, by its first bytes."""

from service.errors import InvalidOnnxModel
from service.model_rules import ModelRule

ORT_FORMAT = (4, b"ORTM")
# What people take for a model, or send by mistake.
OTHERS = (
    (0, b"PK\x03\x04", "a zip archive, as PyTorch, Keras and numpy write"),
    (0, b"\x89HDF", "an HDF5 file, as Keras writes"),
    (0, b"\x80", "a pickle"),
    (4, b"TFL3", "a TensorFlow Lite model"),
    (0, b"\x89PNG", "a PNG picture"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"version https://git-lfs", "a pointer of Git LFS, in place of the file"),
    (0, b"{", "JSON"),
    (0, b"<", "XML or HTML"),
)


def refuse_ort_format(data: bytes) -> None:
    """Refuse a graph that ONNX Runtime wrote for itself.

    Such a file holds what its optimisers made, and the runtime checks it less.
    """
    if _is(data, *ORT_FORMAT):
        raise InvalidOnnxModel.because(
            ModelRule.ORT_FORMAT,
            "the file is in ONNX Runtime's own format (.ort); send the .onnx file it was made from",
        )


def not_onnx(data: bytes) -> InvalidOnnxModel:
    """Return the refusal of bytes that are no ONNX model."""
    if not data:
        looks_like = "it is empty"
    else:
        kinds = (name for at, magic, name in OTHERS if _is(data, at, magic))
        looks_like = f"it looks like {next(kinds, 'a damaged file or one of another format')}"
    return InvalidOnnxModel.because(
        ModelRule.NOT_ONNX, f"the file is not an ONNX model: {looks_like}; export the model to ONNX"
    )


def _is(data: bytes, at: int, magic: bytes) -> bool:
    return data[at : at + len(magic)] == magic
