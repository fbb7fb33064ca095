"""Calibrators on arrays: from a few numbers per sample to the probability of a hit."""
