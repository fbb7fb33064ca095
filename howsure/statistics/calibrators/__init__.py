"""Calibrators on arrays: functions from a few numbers a sample to the probability of a hit."""
