"""Sets of pictures in zip and tar archives: members, labels and pixels."""
