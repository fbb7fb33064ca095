"""The service: HTTP, jobs, storage, and the processes that run models.

Fits solve many small systems: with more BLAS threads than one they wait for each other, on a busy
machine of two cores 30 s in place of 2.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy reads it when it is first imported
