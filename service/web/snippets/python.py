"""The Python client."""

from service.web.snippets.snippet import KEY, ZEROS, Asking, Snippet, python_text

PRINTED = """\
    print(f"{label}: {probability:.3f} ({lower:.3f} to {upper:.3f})")
"""


def snippet(asking: Asking) -> Snippet:
    """Return a program that prints a line for each row."""
    found = asking.calibration
    k = found.events[0]
    key = f"  # sends the key in {KEY}" if asking.keyed else ""
    text = (
        f"import howsure\n{'' if found.takes_pictures else 'import numpy as np'}\n\n"
        f"with howsure.Client({python_text(asking.origin)}) as client:{key}\n"
        f"    answers = client.predict({python_text(found.reference)}, {_rows(asking)})\n\n"
        f"event = answers.event({k})  # {_meaning(k)}\n"
        "shown = zip(answers.label, event.probability, event.lower, event.upper)\n"
        f"for label, probability, lower, upper in shown:\n{PRINTED}"
    ).replace("\n\n\n", "\n\n")
    note = "Paths or bytes of JPEG, PNG or WebP" if found.takes_pictures else ZEROS
    return Snippet("python", "Python", "python", text, f"{note}.", setup="pip install howsure")


def _meaning(k: int) -> str:
    return "that the class is right" if k == 1 else f"that it is among the first {k}"


def _rows(asking: Asking) -> str:
    found = asking.calibration
    if found.takes_pictures:
        return 'pictures=["picture.jpg"]'
    arrays = {one.name: _array(one.sizes, one.dtype) for one in found.inputs}
    if found.kind != "inputs":
        (scores,) = found.inputs
        rows = f"{found.kind}=np.eye(1, {scores.count})"
    elif len(arrays) == 1:
        rows = next(iter(arrays.values()))
    else:
        rows = (
            "{" + ", ".join(f"{python_text(name)}: {made}" for name, made in arrays.items()) + "}"
        )
    if not found.supplied:
        return rows
    columns = ", ".join(f"{python_text(name)}: [0.0]" for name in found.supplied)
    return f"{rows}, supplied={{{columns}}}"


def _array(sizes: tuple[int, ...], dtype: str) -> str:
    return f"np.zeros({(1, *sizes)}, {python_text(dtype)})"
