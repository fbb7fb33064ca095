"""The error for the pictures of a set that cannot be used."""

import time
from collections.abc import Iterable

from service.errors import InvalidDataset, InvalidInput, Violation

# How many broken pictures an error names, and how long it looks for them: less than any timeout.
MOST_NAMED = 10
SECONDS_FOR_FAULTS = 10.0


def refuse_pictures(first: InvalidInput, others: Iterable[object], *, place: str) -> InvalidInput:
    """Return the error that names the first pictures that cannot be used, and how many.

    It looks for errors among ``others``, the pictures after the first error, for a few seconds.
    """
    faults, until, count = [first], time.monotonic() + SECONDS_FOR_FAULTS, ""
    for found in others:
        if isinstance(found, InvalidInput):
            faults.append(found)
        if time.monotonic() > until:
            count = "at least "
            break
    if len(faults) == 1:
        return first
    count = f"{count}{len(faults):,} pictures"
    named = [violation for error in faults[:MOST_NAMED] for violation in error.violations]
    more = f", and {len(faults) - MOST_NAMED:,} more" if len(faults) > MOST_NAMED else ""
    which = f"the first {MOST_NAMED} are named below" if more else "each is named below"
    return InvalidDataset(
        f"{place}: {count} cannot be used: {', '.join(f.location for f in named)}{more}",
        [
            Violation(place, f"{count} cannot be used; {which}; send them again or leave them out"),
            *named,
        ],
    )
