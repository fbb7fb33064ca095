"""Names must be text.

ONNX files are proto2: a string field that is no UTF-8 is not refused by the parser, and comes out
as bytes where everybody expects str.
"""

from collections.abc import Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

from service.errors import InvalidOnnxModel
from service.model_rules import ModelRule

# Remarks for people, which nothing here reads.
REMARKS = frozenset(("doc_string", "metadata_props"))


def check_text(model: ModelProto) -> None:
    """Refuse a model in which a name of anything is not UTF-8.

    Raises
    ------
    InvalidOnnxModel
        If there is one; the message shows its bytes.
    """
    for text in _texts(model):
        if isinstance(text, bytes):
            raise InvalidOnnxModel.because(
                ModelRule.NOT_TEXT, f"the name {text[:80]!r} is not text in UTF-8; rename it"
            )


def _texts(message: Message) -> Iterator[str | bytes]:
    if isinstance(message, TensorProto):  # listing its fields would copy the weights
        yield message.name
        for entry in message.external_data:
            yield from (entry.key, entry.value)
        return
    for field, value in message.ListFields():
        if field.name in REMARKS:
            continue
        values = (value,) if isinstance(value, str | bytes | Message) else value
        if field.type == FieldDescriptor.TYPE_STRING:
            yield from values
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in values:
                yield from _texts(inner)
