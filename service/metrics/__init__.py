"""What the service counts and times, for GET /metrics."""

from service.metrics.answers import AnswerCounts
from service.metrics.metrics import CONTENT_TYPE, Metrics

__all__ = ["CONTENT_TYPE", "AnswerCounts", "Metrics"]
