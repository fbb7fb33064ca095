"""Scoring a whole file: its rows asked for in pieces, what came back written as one table.

Each piece is a part, kept beside the result until all are there: what is killed goes on where it
was, and the result is the same bytes.
"""

from service.cli.scoring.score_file import DEFAULT_REQUESTS, Scoring, score_file

__all__ = ["DEFAULT_REQUESTS", "Scoring", "score_file"]
