"""Versions of what made a number, for the record."""

import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("howsure", "numpy", "scipy", "onnx", "onnxruntime-gpu", "onnxruntime")


@lru_cache(maxsize=1)
def library_versions() -> dict[str, str]:
    """Return the versions of the interpreter and of the libraries that make numbers."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
