"""The routes of all pages."""

from service.web import (
    forms,
    home,
    integrate,
    measures,
    operating_point,
    report,
    samples,
    session,
    static_files,
    try_prediction,
)

ROUTES = (
    *home.ROUTES,
    *session.ROUTES,
    *session.SIGN_OUT_ROUTES,
    *home.JOBS_ROUTES,
    *forms.ROUTES,
    *forms.CANCEL_ROUTES,
    *report.ROUTES,
    *measures.ROUTES,
    *operating_point.PAGE_ROUTES,
    *operating_point.ROUTES,
    *forms.DECIDE_ROUTES,
    *samples.SAMPLES_ROUTES,
    *samples.ROUTES,
    *try_prediction.ROUTES,
    *integrate.ROUTES,
    *report.CHART_FILE_ROUTES,
    *static_files.ROUTES,
)
