"""Quantile bins: edges, priors, intervals, lookups and tables."""
