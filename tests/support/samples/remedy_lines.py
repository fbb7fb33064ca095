"""What the Python lines of a remedy do."""

from typing import Any

import numpy as np


def followed(lines: str, **names: Any) -> dict[str, Any]:
    """Run the lines as a reader of the remedy would; return all names afterwards."""
    names["numpy"] = np
    exec(lines, names)  # noqa: S102 - that readers can run them is what is tested
    return names
