"""Structs in Thrift's compact protocol, as Parquet writes its headers: their integers alone."""

from typing import TypeAlias

Fields: TypeAlias = "dict[int, int | Fields]"

_MAX_DEPTH = 8
_MAX_VARINT_BYTES = 10
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_LONG_LIST = 15


class ThriftError(ValueError):
    """These bytes are no whole struct."""


def read_struct(data: bytes) -> tuple[Fields, int]:
    """Return the integers of a struct by the ids of their fields, and the bytes it takes.

    Structs within are returned alike; text, lists and maps are passed over.

    Raises
    ------
    ThriftError
        If the bytes end before it, or are none.
    """
    reader = _Reader(data)
    return reader.struct(0), reader.at


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int) -> Fields:
        if depth > _MAX_DEPTH:
            raise ThriftError("nested too deep")
        fields: Fields = {}
        field = 0
        while True:
            head = self._byte()
            if head == 0:
                return fields
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self._integer()
            value = self._value(kind, depth)
            if value is not None:
                fields[field] = value

    def _value(self, kind: int, depth: int) -> "int | Fields | None":
        if kind in (_TRUE, _FALSE):
            return int(kind == _TRUE)
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            self._pass_list(depth)
        elif kind in (_BYTE, _DOUBLE):
            self._pass(1 if kind == _BYTE else 8)
        elif kind == _BINARY:
            self._pass(self._varint())
        else:
            # Maps among them: no header of a page has one.
            raise ThriftError("a type that is not read")
        return None

    def _pass_list(self, depth: int) -> None:
        head = self._byte()
        size, kind = head >> 4, head & 15
        if size == _LONG_LIST:
            size = self._varint()
        for _ in range(size):
            if kind in (_TRUE, _FALSE):
                self._pass(1)
            else:
                self._value(kind, depth + 1)

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for position in range(_MAX_VARINT_BYTES):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:  # noqa: PLR2004 - the bit that says more follows
                return value
        raise ThriftError("an integer of more than 64 bits")

    def _byte(self) -> int:
        self._pass(1)
        return self._data[self.at - 1]

    def _pass(self, size: int) -> None:
        self.at += size
        if self.at > len(self._data):
            raise ThriftError("cut off")
