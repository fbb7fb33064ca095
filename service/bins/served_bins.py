"""The bins that answers are looked up in, as the report has them."""

import uuid
from typing import Any

from service.reports.report import render_bin
from service.storage.fit_results import served_tables
from service.workspace import Workspace


def served_bins(
    workspace: Workspace, tenant_id: uuid.UUID, calibration_id: uuid.UUID
) -> dict[str, Any]:
    """Return that part of the report of a calibration: of each event the table that serves."""
    with workspace.database.reading() as session:
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
