"""Limits on names and numbers, which configurations, sets and bins documents share."""

# Names of calibrations, keys and tenants.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
# Of a class, a column, or a text in a cell.
MAX_NAME_LENGTH = 200
# Texts of a column that is not read: with more it says nothing of kinds of samples.
MOST_TEXTS = 5
# Of a table.
MAX_BINS = 10_000
# Of the prior, in samples.
MAX_STRENGTH = 1e6
TINY = 1e-9  # nearer to an end of (0, 1) a probability is lost to rounding on its way
