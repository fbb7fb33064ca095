"""What is known of a tensor before there is one."""

from dataclasses import dataclass

from service.bodies.oip.datatypes import DATATYPES


@dataclass(frozen=True)
class TensorMetadata:
    """One tensor; -1 stands for any size, and so always for that of the batch."""

    name: str
    datatype: str
    shape: list[int]


def item_bytes(tensor: TensorMetadata) -> int:
    """Return the bytes of one of its numbers."""
    return DATATYPES[tensor.datatype].itemsize
