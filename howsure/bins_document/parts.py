"""Types of numbers and texts in the bins document, and the bases of its parts."""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from howsure.limits import MAX_NAME_LENGTH, TINY

MAX_COUNT = 2**63 - 1

Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Rate: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Inside: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]  # of the ends of [0, 1]
Risk: TypeAlias = Annotated[float, Meta(ge=TINY, lt=1)]
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH)]


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part that has all of its keys."""


class SparsePart(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A part without keys that older documents lack: their digests must stay valid."""
