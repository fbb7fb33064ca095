"""The routes of all pages."""

from starlette.routing import BaseRoute, Mount

from service.web import (
    forms,
    home,
    integrate,
    measures,
    report,
    samples,
    session,
    shift,
    static_files,
    try_prediction,
)
from service.web.operating_point import outcome, page
from service.web.page_route import PageRoute, SharedRoute, in_lane

_OF = "/pages/calibrations/{calibration_id}"
ROUTES: tuple[BaseRoute, ...] = (
    PageRoute("/", home.home),
    PageRoute("/sign-in", session.show),
    PageRoute("/pages/jobs", home.jobs),
    SharedRoute("/report", in_lane(report.report)),
    PageRoute(f"{_OF}/delete", home.deletion),
    PageRoute(f"{_OF}/measures", in_lane(measures.measures)),
    PageRoute(f"{_OF}/operating-point", in_lane(page.operating_point)),
    PageRoute(f"{_OF}/operating-point/outcome", in_lane(outcome.outcome)),
    PageRoute(f"{_OF}/samples", in_lane(samples.samples)),
    PageRoute(f"{_OF}/samples/{{row}}.png", samples.sample_file),
    PageRoute(f"{_OF}/shift", in_lane(shift.shift)),
    PageRoute(f"{_OF}/shift.csv", in_lane(shift.quartiles)),
    PageRoute(f"{_OF}/try", try_prediction.show),
    PageRoute(f"{_OF}/integrate", in_lane(integrate.integrate)),
    PageRoute(f"{_OF}/charts/{{chart}}/{{key}}", in_lane(report.chart_file)),
    PageRoute("/sign-in", session.sign_in, method="POST"),
    PageRoute("/sign-out", session.sign_out, method="POST"),
    PageRoute("/pages/calibrate", forms.calibrate, method="POST"),
    PageRoute(f"{_OF}/delete", forms.delete, method="POST"),
    PageRoute(f"{_OF}/cancel", forms.cancel, method="POST"),
    PageRoute(f"{_OF}/evaluations/{{evaluation_name:path}}/cancel", forms.cancel, method="POST"),
    PageRoute(f"{_OF}/operating-points", forms.save, method="POST"),
    PageRoute(f"{_OF}/operating-points/withdraw", forms.withdraw, method="POST"),
    PageRoute(f"{_OF}/try", try_prediction.send, method="POST"),
    Mount(static_files.ADDRESS, static_files.FILES, name="pages"),
)
