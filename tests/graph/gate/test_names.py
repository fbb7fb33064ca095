import numpy as np
from graph_models import branched, constant, make_model, node, reference, serve, value

LOGITS = (3 * np.random.default_rng(0).normal(size=(12, 6))).astype(np.float32)


def test_a_models_own_names_do_not_meet_the_heads():
    nodes = [
        node("MatMul", ["x", "howsure_n1"], ["howsure_top_classes"]),
        node("Identity", ["howsure_top_classes"], ["howsure_n2"]),
        node("Identity", ["howsure_n2"], ["user.howsure_n2"]),
        node("Identity", ["user.howsure_n2"], ["howsure_entropy"]),
    ]
    model = make_model(
        nodes,
        outputs=[value("howsure_entropy")],
        initializers=[constant("howsure_n1", np.eye(6))],
    )
    served = serve(model, {"x": LOGITS})
    assert served.choice.name.endswith("howsure_entropy")
    for column, expected in reference(LOGITS)[2].items():
        np.testing.assert_allclose(served[column], expected, rtol=1e-4)


def test_names_inside_branches_are_freed_as_well():
    body = [
        node("Add", ["howsure_z", "howsure_b"], ["howsure_entropy"]),
        node("Identity", ["howsure_entropy"], ["a"]),
    ]
    nodes = branched(body, "howsure_z", "y", initializers=[constant("howsure_b", np.zeros(6))])
    model = make_model([node("Identity", ["x"], ["howsure_z"]), *nodes])
    served = serve(model, {"x": LOGITS})
    np.testing.assert_allclose(served["entropy"], reference(LOGITS)[2]["entropy"], rtol=1e-4)
