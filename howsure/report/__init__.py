"""Reports in words: sentences from the facts of the statistics."""
