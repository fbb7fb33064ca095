"""Structs in Thrift's compact protocol, as Parquet writes its headers and its footer."""

from typing import TypeAlias

Value: TypeAlias = "int | bytes | list[Value] | Fields"
Fields: TypeAlias = "dict[int, Value]"

_MAX_DEPTH = 8
_MAX_VARINT_BYTES = 10
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_LONG_LIST = 15


class ThriftError(ValueError):
    """These bytes are no whole struct."""


def read_struct(data: bytes) -> tuple[Fields, int]:
    """Return the values of a struct by the ids of their fields, and the bytes it takes.

    Numbers that are no integers are zeros.

    Raises
    ------
    ThriftError
        If the bytes end before it, or are none.
    """
    reader = _Reader(data)
    try:
        return reader.struct(0), reader.at
    except IndexError as error:
        raise ThriftError("cut off") from error


def list_length(data: bytes, field: int) -> int:
    """Return how many values a list in a struct claims to have, of which none is read.

    Raises
    ------
    ThriftError
        If the bytes end before it, or begin no struct with such a list.
    """
    reader = _Reader(data)
    try:
        return reader.list_length(field)
    except IndexError as error:
        raise ThriftError("cut off") from error


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
            head = self._data[self.at]
            self.at += 1
            if head == 0:
                return fields
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self._integer()
            fields[field] = self._value(kind, depth)

    def list_length(self, wanted: int) -> int:
        field = 0
        while True:
            head = self._data[self.at]
            self.at += 1
            delta, kind = head >> 4, head & 15
            field = field + delta if delta else self._integer()
            if head == 0 or (field == wanted and kind != _LIST):
                raise ThriftError("no such list")
            if field == wanted:
                return self._list_head()[0]
            self._value(kind, 0)

    def _value(self, kind: int, depth: int) -> Value:
        if _I16 <= kind <= _I64:
            return self._integer()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        if kind in (_TRUE, _FALSE):
            return int(kind == _TRUE)
        if kind in (_BYTE, _DOUBLE):
            self._bytes(1 if kind == _BYTE else 8)
            return 0
        # Maps among them: Parquet has none.
        raise ThriftError("a type that is not read")

    def _list(self, depth: int) -> list[Value]:
        if depth > _MAX_DEPTH:
            raise ThriftError("nested too deep")
        size, kind = self._list_head()
        # Flags take a byte each in a list, as every other value takes one at least.
        kind = _BYTE if kind in (_TRUE, _FALSE) else kind
        return [self._value(kind, depth) for _ in range(size)]

    def _list_head(self) -> tuple[int, int]:
        """Return how many values a list has, and of which kind."""
        head = self._bytes(1)[0]
        size, kind = head >> 4, head & 15
        return (self._varint() if size == _LONG_LIST else size), kind

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for position in range(_MAX_VARINT_BYTES):
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:  # noqa: PLR2004 - the bit that says more follows
                return value
        raise ThriftError("an integer of more than 64 bits")

    def _bytes(self, size: int) -> bytes:
        found = self._data[self.at : self.at + size]
        self.at += size
        if len(found) < size:
            raise ThriftError("cut off")
        return found
