"""Edit the caller's ONNX model: describe it, choose its output, and add the uncertainty head.

In order, on one ``ModelProto`` that every step edits in place (weights are never copied)::

    model = load_onnx_model(data)                              # load
    description = describe_onnx_model(model)                   # describe
    in_memory = attach_external_data(model, companions)        # external
    plan = plan_output(model, name=..., kind=...)              # plan
    probe_graph(model, plan)          # probe: run it on a few rows of the calibration set
    choice = choose_output(plan, trial, n_samples=...)         # choose
    build_serving_graph(model, choice, top_k=...)              # serving

For several runs with noise, ``plan.tensor`` is first made to depend on additional graph inputs,
called sites (noise_site). Fed with ``site.neutral`` the model gives its own answer::

    sites = expose_dropout(model, plan.tensor, rate=...)       # dropout
    sites = expose_random(model, plan.tensor)                  # or random_operators
    build_serving_graph(model, choice, top_k=..., sites=sites)

Dropout before the last layer only stays inside the graph, with constant masks. Their shape is that
of the features of one row::

    find_last_layer(model.graph, choice.tensor).rate           # last_layer
    expose_features(model, choice)                             # last_layer_dropout
    build_serving_graph(another, choice, top_k=..., last_layer_masks=masks)

The calibrated model as one file is made from a fresh model with a stored choice, like serving
graphs::

    build_export_graph(model, choice, spec, scalars)           # export

``OutputChoice`` (output), ``OnnxModelDescription`` (description) and ``NoiseSite`` (noise_site)
import no third party, so that a process without onnx can hold them; nor does ``ExportSpec``
(export_spec), but numpy. With a stored choice, plan, probe and choose are left out.
"""
