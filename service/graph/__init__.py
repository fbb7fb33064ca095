"""Surgery on the caller's ONNX model: what it is, which output counts, and the uncertainty head.

In order, on one ``ModelProto`` that every step edits in place (weights are never copied)::

    model = load_onnx_model(data)                              # load
    description = describe_onnx_model(model)                   # describe
    in_memory = attach_external_data(model, companions)        # external
    plan = plan_output(model, name=..., kind=...)              # plan
    probe_graph(model, plan)          # probe: run it on a few rows of the calibration set
    choice = choose_output(plan, trial, n_samples=...)         # choose
    build_serving_graph(model, choice, top_k=...)              # serving

``OutputChoice`` (output) and ``OnnxModelDescription`` (description) import no third party, so that
a process without onnx can hold them. With a stored choice, plan, probe and choose are left out.
"""
