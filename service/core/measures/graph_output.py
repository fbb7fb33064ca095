"""Measures that a model computes itself: a scalar output of its graph, one number a sample."""

import re
from hashlib import blake2b

OUTPUT = "output:"
# A measure's name is kept in a column of 100 characters.
MAX_OUTPUT_NAME = 100 - len(OUTPUT)

_PLAIN = re.compile(r"[A-Za-z0-9_]{1,50}")


def is_output(measure: str) -> bool:
    """Tell whether a measure is an output of the graph: ``output:<name>``.

    The name is the graph's own: 1 to 93 printable characters, whatever they are.
    """
    name = measure.removeprefix(OUTPUT)
    return measure.startswith(OUTPUT) and 1 <= len(name) <= MAX_OUTPUT_NAME and name.isprintable()


def output_column(name: str) -> str:
    """Return the name under which the values of a graph's output are kept, safe wherever one is.

    ``output_<name>`` where the name is 1 to 50 ASCII letters, digits and underscores. Other names
    are replaced by ``output-`` and 128 bits of their hash: escaped, they would grow without bound.
    """
    if _PLAIN.fullmatch(name):
        return f"output_{name}"
    return f"output-{blake2b(name.encode(), digest_size=16).hexdigest()}"
