"""The per-sample record of a calibration run: its type, how it is made and how it is joined."""

from service.core.records.build import build_records, score_uncertainty
from service.core.records.records import Records, concatenate, join
from service.core.records.temperatures import TEMPERATURES

__all__ = ["TEMPERATURES", "Records", "build_records", "concatenate", "join", "score_uncertainty"]
