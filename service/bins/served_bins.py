"""The served bins of a calibration, in the report's format."""

import uuid
from typing import Any

from service.reports.report import render_bin
from service.storage.fit_results import served_tables
from service.workspace import Workspace


def served_bins(
    workspace: Workspace, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> dict[str, Any]:
    """Return the part of the report with the served table of each event."""
    with workspace.database.reading(tenant_id) as session:
        tables = served_tables(session, tenant_id, calibration_id)
    return {
        "events": {
            str(table.k): {
                "measures": {
                    table.measure: {
                        "bins": [render_bin(found, table.n_samples) for found in table.bins]
                    }
                }
            }
            for table in tables
        }
    }
