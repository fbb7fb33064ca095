"""Accept a calibration: everything a caller can get wrong is checked here, before it is queued."""

import uuid
from contextlib import ExitStack

from service.operations.checked_upload import check_upload
from service.operations.findings_at_start import findings_at_start
from service.operations.keep_calibration import keep_calibration
from service.operations.strict_findings import check_strict
from service.operations.uploads import CalibrationUpload
from service.operations.workspace import Workspace


def start_calibration(
    workspace: Workspace, tenant_id: uuid.UUID, upload: CalibrationUpload
) -> uuid.UUID:
    """Check the upload, keep its files and queue a calibration; return the calibration's id.

    Raises
    ------
    InvalidInput
        If a part breaks a rule, or looks wrong in a way that the configuration is strict about;
        nothing is kept then.
    """
    with ExitStack() as stack:
        checked = check_upload(workspace, upload, stack)
        findings = findings_at_start(workspace, checked)
        check_strict(findings, checked.config["strict"])
        return keep_calibration(workspace, tenant_id, checked, findings)
