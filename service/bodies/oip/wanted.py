"""What an inference request wants back, apart from its inputs: plain, to travel by itself."""

import msgspec

from service.bodies.oip.request import InferRequest, flag, place_of


class Wanted(msgspec.Struct):
    """Which outputs are to come back, and how.

    Attributes
    ----------
    id
        What the request calls itself, to stand in its answer.
    all_binary
        Whether outputs are raw tensors where none is named.
    outputs
        Names in the order asked for, and whether each is to be a raw tensor; None for all.
    """

    id: str | None = None
    all_binary: bool = False
    outputs: list[tuple[str, bool]] | None = None


def wanted_of(request: InferRequest) -> Wanted:
    """Return what a request wants; whether there are such outputs is not known here.

    Raises
    ------
    InvalidInput
        If a parameter that is true or false is neither.
    """
    all_binary = request.all_binary
    outputs = [
        (
            output.name,
            flag(
                output.parameters,
                "binary_data",
                f"{place_of('outputs', output.name)}.parameters",
                default=all_binary,
            ),
        )
        for output in request.outputs or []
    ]
    return Wanted(request.id, all_binary, outputs or None)
