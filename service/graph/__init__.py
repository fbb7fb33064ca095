"""Surgery on the caller's ONNX model: what it is, which output counts, and the uncertainty head.

In order, on one ``ModelProto`` that every step edits in place (weights are never copied)::

    model = load_onnx_model(data)                              # load
    description = describe_onnx_model(model)                   # describe
    in_memory = attach_external_data(model, companions)        # external
    plan = plan_output(model, name=..., kind=...)              # plan
    probe_graph(model, plan)          # probe: run it on a few rows of the calibration set
    choice = choose_output(plan, trial, n_samples=...)         # choose
    build_serving_graph(model, choice, top_k=...)              # serving

Where the model is run more than once, with noise that is fed, ``plan.tensor`` is first made to
depend on graph inputs, which are called sites (noise_site) and are fed with ``site.quiet`` for
the model's own answer::

    sites = expose_dropout(model, plan.tensor, rate=...)       # dropout
    sites = expose_random(model, plan.tensor)                  # or random_operators
    build_serving_graph(model, choice, top_k=..., sites=sites)

Dropout before the last layer alone stays inside the graph, with masks that are constants of it.
Their shape is that of what a graph made for it gives for a row::

    find_last_layer(model.graph, choice.tensor).rate           # last_layer
    expose_features(model, choice)                             # last_layer_dropout
    build_serving_graph(another, choice, top_k=..., last_layer_masks=masks)

One file of all, for others to run, is made from a fresh model with a stored choice, as serving
graphs are::

    build_export_graph(model, choice, spec, scalars)           # export

``OutputChoice`` (output), ``OnnxModelDescription`` (description) and ``NoiseSite`` (noise_site)
import no third party, so that a process without onnx can hold them; nor does ``ExportSpec``
(export_spec), but numpy. With a stored choice, plan, probe and choose are left out.
"""
