"""The charts of a report, each a function from plain data to a picture."""
