"""What a running job tells the database."""

import time

import pytest
from storage_rows import claimed, queue_calibration, queue_of, stored

from service.jobs.progress import Progress


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_the_rate_of_the_stage_is_told_with_it(database) -> None:
    row, queue = queue_calibration(database), queue_of(database)
    progress = Progress(queue, claimed(queue), check=lambda: None)
    progress.report("calibration", 0, 1000, now=True)
    assert stored(database, row.id).progress_rate is None
    # As if the evaluation set had been begun a while ago, with some of it done before.
    progress.rate.seen("evaluation", 100, time.monotonic() - 10)
    progress.report("evaluation", 600, 1000, now=True)
    told = stored(database, row.id)
    assert (told.progress_stage, told.progress_done) == ("evaluation", 600)
    assert 0 < told.progress_rate <= 50
