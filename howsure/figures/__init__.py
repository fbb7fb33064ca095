"""Figures of a report: pictures with words and a table of their numbers."""
