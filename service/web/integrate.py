"""``/pages/calibrations/{id}/integrate``: programs that request predictions."""

from starlette.requests import Request
from starlette.responses import Response

from howsure.report.located import Located
from howsure.report.report import Subject
from service.web.integration import describe_integration
from service.web.page import calibration_page
from service.web.page_route import needs_key, origin_of, subject_of
from service.web.snippets import KEY, snippets_of


def integrate(request: Request) -> Response:
    """Show programs with the names and shapes of the calibration."""
    found = describe_integration(*subject_of(request))
    keyed = needs_key(request)
    return calibration_page(
        request,
        "integrate.html",
        "integrate",
        Subject(id=found.id, name=found.name, version=found.version),
        found=found,
        shown=Located(found.onnx_model, "/provenance/model"),
        snippets=snippets_of(found, origin_of(request), keyed=keyed),
        key=KEY if keyed else None,
    )
