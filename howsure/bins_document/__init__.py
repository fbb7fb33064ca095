"""The bins document: what a calibrator is saved as, and what services exchange."""
