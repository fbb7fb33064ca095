"""Services on a kernel that has no Landlock: ``python without_landlock.py FOLDER``.

Asks one that refuses models, and one that allows them, from within; prints as JSON what each
answers: alive, ready, to an upload of a model.
"""

import json
import sys
from pathlib import Path

from forked_children import ForkServer
from locked_child import pretend_without
from running_service import QUICK, calibrate, digits, service_on

from service.child.lockdown import landlock


def answers(client):
    uploaded = calibrate(
        client,
        model=digits("model.onnx"),
        calibration=digits("calibration.npz"),
        config=json.dumps(QUICK),
    )
    responses = {"alive": client.get("/healthz"), "ready": client.get("/readyz")}
    responses["uploaded"] = uploaded
    return {name: [one.status_code, one.json()] for name, one in responses.items()}


def main(folder):
    pretend_without(landlock.CREATE_RULESET)
    server, found = ForkServer(), {}
    for name in ("refused", "allowed"):
        (folder / name).mkdir()
        options = {"allow_unsandboxed": name == "allowed", "start_child": server.start_child}
        with service_on(folder / name, **options) as client:
            found[name] = answers(client)
    server.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
