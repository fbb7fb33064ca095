"""A graph that shows the tensors the choice of an output rests on."""

from onnx import ModelProto, NodeProto, TensorProto, helper

from service.graph.edit import keep_outputs
from service.graph.plan import OutputPlan
from service.graph.softmax import producers_of

OUTPUT = "howsure_output"
HOOK = "howsure_hook"
RAW = "howsure_raw"
UNUSED = "howsure_unused"


def probe_graph(model: ModelProto, plan: OutputPlan) -> ModelProto:
    """Make the model give out the planned tensors, in place, and return it.

    The outputs are ``howsure_output`` and, where logits may lie behind it, ``howsure_hook``; both
    float64, which numpy has for every type a model computes in.
    """
    graph = model.graph
    shown = {OUTPUT: plan.tensor}
    if plan.hook is not None:
        shown[HOOK] = plan.hook.tensor
        if plan.hook.raw:
            # The classifier a second time, for the confirmation needs both of its faces.
            twin = NodeProto()
            twin.CopyFrom(producers_of(graph)[plan.hook.tensor])
            twin.name = ""
            twin.output[:] = [UNUSED, RAW]
            leave_raw(twin)
            graph.node.append(twin)
            shown[HOOK] = RAW
    for name, tensor in shown.items():
        graph.node.append(helper.make_node("Cast", [tensor], [name], to=TensorProto.DOUBLE))
    keep_outputs(
        graph, [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in shown]
    )
    return model


def leave_raw(classifier: NodeProto) -> None:
    """Tell an ``ai.onnx.ml`` classifier, in place, to give its scores untransformed."""
    for attribute in classifier.attribute:
        if attribute.name == "post_transform":
            attribute.s = b"NONE"
