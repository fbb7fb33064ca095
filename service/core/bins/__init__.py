"""Quantile bins. Nothing is imported here: intervals need the prior, and tables the intervals."""
