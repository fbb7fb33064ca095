"""What the service counts and times, for GET /metrics."""

from service.metrics.answers import AnswerCounts
from service.metrics.families import Family
from service.metrics.metrics import CONTENT_TYPE, Metrics
from service.metrics.requests import RequestMetrics
from service.metrics.tally import Tally

__all__ = ["CONTENT_TYPE", "AnswerCounts", "Family", "Metrics", "RequestMetrics", "Tally"]
