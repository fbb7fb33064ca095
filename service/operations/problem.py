"""A failure as it is kept with a calibration."""

from service.errors import ServiceError


def problem_of(error: Exception) -> dict[str, object]:
    """Return the failure as plain data: no traceback, no path of this machine."""
    if isinstance(error, ServiceError):
        return {
            "type": f"urn:howsure:problem:{error.code()}",
            "title": error.title(),
            "detail": error.message,
            "errors": [
                {"location": found.location, "message": found.message} for found in error.violations
            ],
        }
    return {
        "type": "urn:howsure:problem:internal-error",
        "title": "Internal error",
        "detail": "The service failed in a way it should not; its log holds the reason.",
        "errors": [],
    }
