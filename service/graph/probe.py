"""A graph that shows the tensors the choice of an output rests on."""

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from service.graph.edit import keep_outputs
from service.graph.plan import OutputPlan
from service.graph.softmax import producers_of

OUTPUT = "howsure_output"
HOOK = "howsure_hook"
RAW = "howsure_raw"
UNUSED = "howsure_unused"
SCALAR = "howsure_scalar_"


def probe_graph(model: ModelProto, plan: OutputPlan) -> ModelProto:
    """Make the model give out the planned tensors, in place, and return it.

    The outputs are ``howsure_output`` and, where logits may lie behind it, ``howsure_hook``, and
    ``howsure_scalar_{i}`` for each scalar output by its position in the plan; all float64, which
    numpy has for every type a model computes in.
    """
    graph = model.graph
    shown = {OUTPUT: plan.tensor}
    if plan.hook is not None:
        shown[HOOK] = raw_scores(graph, plan.hook.tensor) if plan.hook.raw else plan.hook.tensor
    shown |= {f"{SCALAR}{i}": name for i, name in enumerate(plan.scalars)}
    for name, tensor in shown.items():
        graph.node.append(helper.make_node("Cast", [tensor], [name], to=TensorProto.DOUBLE))
    keep_outputs(
        graph, [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in shown]
    )
    return model


def raw_scores(graph: GraphProto, tensor: str) -> str:
    """Add, in place, a twin of the classifier that makes the tensor, and return its raw scores.

    An ``ai.onnx.ml`` classifier then leaves out its softmax or logistic function. The first stays
    as it is: the confirmation of a choice needs both, and other outputs may be made from it.
    """
    producers = producers_of(graph)
    if RAW not in producers:
        twin = NodeProto()
        twin.CopyFrom(producers[tensor])
        twin.name = ""
        twin.output[:] = [UNUSED, RAW]
        for attribute in twin.attribute:
            if attribute.name == "post_transform":
                attribute.s = b"NONE"
        graph.node.append(twin)
    return RAW
