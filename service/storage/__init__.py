"""Where calibrations are kept: the database, the artifacts, the queue."""
