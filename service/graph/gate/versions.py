"""The supported versions of the ONNX format, and small repairs that extend them.

The head needs TopK-11 and ScatterElements-11; ONNX Runtime 1.31 reads opsets up to 26 and IR
versions up to 13. (Of ``ai.onnx.ml`` opsets up to 5.)
"""

from collections.abc import Iterable

from onnx import (
    GraphProto,
    ModelProto,
    OperatorSetIdProto,
    TensorProto,
    defs,
    helper,
    version_converter,
)

from service.errors import InvalidOnnxModel, ModelRule
from service.graph.proto import DEFAULT_DOMAINS, all_graphs

MIN_OPSET = 11
LEAST_CONVERTED = 7  # the first that ONNX Runtime reads
CONVERTED_FROM = "howsure.converted_from_opset"
MAX_OPSET = 26
MAX_ML_OPSET = 5
MAX_IR_VERSION = 13
WIDELY_READ_IR_VERSION = 10
MAX_OPSETS = {**dict.fromkeys(DEFAULT_DOMAINS, MAX_OPSET), "ai.onnx.ml": MAX_ML_OPSET}


def default_opset(model: ModelProto) -> int:
    """Return the opset of the default domain; of several entries the last, like ONNX Runtime.

    A model with only ``ai.onnx.ml`` nodes may have no default opset; the result is then the lowest
    supported one.
    """
    versions = [entry.version for entry in model.opset_import if entry.domain in DEFAULT_DOMAINS]
    return versions[-1] if versions else MIN_OPSET


def check_versions(model: ModelProto) -> None:
    """Refuse versions that ONNX Runtime or the head does not support."""
    if model.ir_version > MAX_IR_VERSION:
        raise InvalidOnnxModel.because(
            ModelRule.IR_TOO_NEW,
            f"IR version {model.ir_version}: ONNX Runtime reads versions up to {MAX_IR_VERSION}; "
            f"save the model with ir_version {MAX_IR_VERSION} or lower",
        )
    for entry in _imports(model):
        most = MAX_OPSETS.get(entry.domain)
        if most is not None and entry.version > most:
            raise InvalidOnnxModel.because(
                ModelRule.OPSET_TOO_NEW,
                f"opset {entry.version} of {entry.domain or 'ai.onnx'}: ONNX Runtime reads opsets "
                f"up to {most}; re-export with opset {most} or lower",
            )
    opset = default_opset(model)
    if opset < MIN_OPSET and not _means_the_same(model, opset):
        raise _too_old(opset)


def convert_old_opset(model: ModelProto) -> ModelProto:
    """Return the model in opset 11 if it has opset 7 to 10 with operators that changed since.

    The result tells the opset of the file, so that its answers can be compared with the file's.

    Raises
    ------
    InvalidOnnxModel
        If ONNX's converter does not convert it.
    """
    opset = default_opset(model)
    if not LEAST_CONVERTED <= opset < MIN_OPSET or _means_the_same(model, opset):
        return model
    # The converter leaves branches and functions as they are.
    _, *nested = all_graphs(model.graph)
    if model.functions or not _are_equal(nested, opset):
        raise _too_old(opset)
    try:
        converted = version_converter.convert_version(model, MIN_OPSET)
    except Exception as error:  # the converter raises what it likes
        raise _too_old(opset) from error
    converted.metadata_props.add(key=CONVERTED_FROM, value=str(opset))
    return converted


def is_converted(model: ModelProto) -> bool:
    """Return whether `convert_old_opset` made the model."""
    return any(entry.key == CONVERTED_FROM for entry in model.metadata_props)


def _too_old(opset: int) -> InvalidOnnxModel:
    return InvalidOnnxModel.because(
        ModelRule.OPSET_TOO_OLD,
        f"opset {opset}: opset {MIN_OPSET} or newer is needed, and ONNX's converter does not "
        "convert this model; export it again with a newer opset",
    )


def normalise_opset(model: ModelProto) -> int:
    """Keep one entry for the default domain, in place, at least ``MIN_OPSET``; return it.

    skl2onnx writes the default domain twice, or opset 9 for a model whose only standard node is a
    Cast. Raising the opset is exact, because `check_versions` accepts an older opset only if its
    operators did not change.
    """
    opset = max(default_opset(model), MIN_OPSET)
    others = [entry for entry in model.opset_import if entry.domain not in DEFAULT_DOMAINS]
    del model.opset_import[:]
    model.opset_import.extend(others)
    model.opset_import.add(domain="", version=opset)
    return opset


def lower_ir_version(model: ModelProto) -> None:
    """Lower the IR version, in place, to one that most runtimes read, if the model permits it.

    Versions after 10 added the opsets from 23 on, 4-bit and 2-bit types, and graphs on several
    devices.
    """
    least = helper.find_min_ir_version_for(_imports(model), ignore_unknown=True)
    is_newer = any(tensor.data_type > TensorProto.INT4 for tensor in model.graph.initializer)
    if not (is_newer or model.configuration):
        model.ir_version = min(model.ir_version, max(WIDELY_READ_IR_VERSION, least))


def _imports(model: ModelProto) -> list[OperatorSetIdProto]:
    """Return the opsets of the graph and of each function."""
    return [*model.opset_import, *(entry for f in model.functions for entry in f.opset_import)]


def _means_the_same(model: ModelProto, opset: int) -> bool:
    """Return whether all standard operators are equal in ``opset`` and ``MIN_OPSET``."""
    return not model.functions and opset >= 1 and _are_equal(all_graphs(model.graph), opset)


def _are_equal(graphs: Iterable[GraphProto], opset: int) -> bool:
    """Return whether the standard operators of graphs are equal in ``opset`` and ``MIN_OPSET``."""
    operators = {
        node.op_type for graph in graphs for node in graph.node if node.domain in DEFAULT_DOMAINS
    }
    return all(_since(name, opset) == _since(name, MIN_OPSET) != 0 for name in operators)


def _since(operator: str, opset: int) -> int:
    try:
        return int(defs.get_schema(operator, opset, "").since_version)
    except defs.SchemaError:
        return 0
