"""Pictures: from the bytes of a JPEG to the pixels that a model takes."""
