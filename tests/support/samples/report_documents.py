"""Reports as JSON, changed by a test, and as the classes that they are read into."""

from collections.abc import Mapping
from typing import Any

from howsure.report.plain_parts import typed_part
from howsure.report.report import Report
from service.reports.comparison.comparisons import Comparisons


def typed(document: Mapping[str, Any]) -> Any:
    """Return the report, or the comparison, of a document."""
    return typed_part(document, Comparisons if "comparisons" in document else Report)
