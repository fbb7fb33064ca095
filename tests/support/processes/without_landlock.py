"""A service on a kernel that has no Landlock: ``python without_landlock.py FOLDER allowed``.

Asks it from within and prints, as JSON, what it answers: alive, ready, to an upload of a model.
"""

import json
import sys
from pathlib import Path

from locked_child import pretend_without
from running_service import calibrate, digits, service_on

from service.child.lockdown import landlock
from service.runner.process import RunnerProcess


def main(folder, *, allowed):
    pretend_without(landlock.CREATE_RULESET)
    with service_on(folder, allow_unsandboxed=allowed, start_child=RunnerProcess.start) as client:
        uploaded = calibrate(
            client, model=digits("model.onnx"), calibration=digits("calibration.npz"), config="{}"
        )
        answers = {"alive": client.get("/healthz"), "ready": client.get("/readyz")}
        found = {name: [a.status_code, a.json()] for name, a in answers.items()}
        found["uploaded"] = [uploaded.status_code, uploaded.json()]
        sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), allowed=sys.argv[2] == "allowed")
