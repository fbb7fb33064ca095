"""What a stranger's file must be before ONNX Runtime is shown it: one rule a file.

They run in the locked child, in this order; what each refuses, and what to change then, is in
docs/model-gate.md::

    refuse_ort_format(data)   # file_kind
    check_parts(data)         # parts: the bytes, before anything is made of them
    check_text(model)         # text
    check_versions(model)     # service.graph.versions
    check_names_once(model)   # names_once
    check_operators(model)    # operators
    check_nodes(model)        # nodes, with functions
    external_files(model)     # service.graph.external, with what `describe_onnx_model` refuses

What a file turns out to be on real rows is found by `choose_output` and what calls it.
"""
