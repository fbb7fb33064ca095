"""Reports in words: sentences from their facts."""
