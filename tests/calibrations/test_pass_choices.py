"""Several measures with passes at once, and the one that serves."""

from model_services import BASE, as_file, labelled_sets, model_file, predictions
from running_service import calibrated, refit

SETS = labelled_sets()
ROWS = SETS["evaluation_inputs"][:40]


def test_several_measures_at_once(client) -> None:
    # Passes of each measure alone, and runs of the model where it serves.
    costs = {
        "entropy": (1, 1),
        "gradient_norm": (8, 9),
        "dropout_variance": (5, 6),
        "last_layer_dropout_variance": (0, 1),
    }
    made = calibrated(
        client,
        BASE | {"measures": list(costs), "dropout": {"passes": 5}, "gradient": {"directions": 4}},
        model=model_file("last_layer_dropout_cnn.onnx"),
        calibration=as_file(SETS),
    )
    passes = {name: cost["passes"] for name, cost in made["costs"].items()}
    assert passes == {name.replace("entropy", "plain"): alone for name, (alone, _) in costs.items()}
    report = client.get("/report", params={"calibration": made["id"]}).json()
    compared = {row["measure"]: row["passes"] for row in report["events"]["1"]["comparison"]}
    assert compared == {name: runs for name, (_, runs) in costs.items()}
    for measure in costs:
        served = refit(client, made["id"], serve={"1": measure}).json()
        answers = predictions(client, served["id"], ROWS)
        assert {answer["top1"]["measure"] for answer in answers} == {measure}
