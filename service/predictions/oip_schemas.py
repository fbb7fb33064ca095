"""Schemas of the Open Inference Protocol, as the OpenAPI document shows them."""

from typing import Any

from pydantic import BaseModel, Field

Parameters = dict[str, str | int | float | bool]


class OipError(BaseModel):
    """The body of every failed request below `/v2`."""

    error: str = Field(
        examples=["calibration: there is no calibration 'digits'"],
        description="What happened, in a sentence.",
    )


class OipServer(BaseModel):
    """The server."""

    name: str = Field(examples=["howsure"], description="Always `howsure`.")
    version: str = Field(description="Of the service.")
    extensions: list[str] = Field(description="Supported extensions of the protocol.")


class OipReadiness(BaseModel):
    """The server, or a model, can answer."""

    ready: bool = Field(
        description="Always true: a server or model that is not ready responds with an error."
    )


class OipLiveness(BaseModel):
    """The server answers."""

    live: bool = Field(description="Always true.")


class OipTensor(BaseModel):
    """An input or output tensor of a model."""

    name: str = Field(examples=["top1_probability"], description="Its name.")
    datatype: str = Field(examples=["FP32"], description="`BOOL`, `INT64`, `FP32`, …")
    shape: list[int] = Field(examples=[[-1]], description="-1 is any size; the first is the batch.")


class OipModel(BaseModel):
    """A calibration, as a model."""

    name: str = Field(examples=["digits"], description="The calibration's name.")
    versions: list[str] = Field(examples=[["1"]], description="Versions that can answer.")
    platform: str = Field(
        examples=["onnxruntime_onnx"],
        description="`howsure` if the model runs elsewhere and requests hold its outputs.",
    )
    inputs: list[OipTensor] = Field(description="Inputs of the model.")
    outputs: list[OipTensor] = Field(description="Outputs of the model.")


class OipIndexEntry(BaseModel):
    """A version of a model."""

    name: str = Field(description="The calibration's name.")
    version: str = Field(description="Its version.")
    state: str = Field(examples=["READY"], description="`READY` or `UNAVAILABLE`.")
    reason: str = Field(
        examples=[""], description="Empty, or its status: `queued`, `running`, `failed`, …"
    )


class OipIndexRequest(BaseModel):
    """Filter of the index."""

    ready: bool = Field(False, description="Only those that can answer.")


class OipInputTensor(BaseModel):
    """An input tensor of a request: `data`, or bytes after the JSON."""

    name: str = Field(examples=["inputs"], description="Its name in the metadata.")
    shape: list[int] = Field(examples=[[1, 64]], description="Rows first.")
    datatype: str = Field(examples=["FP32"], description="Its datatype.")
    parameters: Parameters | None = Field(
        None, description="`binary_data_size`, its size in bytes, if there is no `data`."
    )
    data: list[Any] | None = Field(
        None, description="Values row by row, flat or nested as its shape."
    )


class OipRequestedOutput(BaseModel):
    """A requested output."""

    name: str = Field(examples=["top1_probability"], description="Its name in the metadata.")
    parameters: Parameters | None = Field(None, description="`binary_data`: true for raw bytes.")


class OipRequest(BaseModel):
    """A request to a model."""

    id: str | None = Field(None, description="Returned in the response.")
    parameters: Parameters | None = Field(
        None, description="`binary_data_output`, and `timeout` in microseconds; others are ignored."
    )
    inputs: list[OipInputTensor] = Field(description="All inputs of the model.")
    outputs: list[OipRequestedOutput] | None = Field(
        None, description="Requested outputs; all by default."
    )


class OipOutputTensor(BaseModel):
    """An output tensor of a response."""

    name: str = Field(examples=["top1_probability"], description="Its name.")
    datatype: str = Field(examples=["FP32"], description="Its type.")
    shape: list[int] = Field(examples=[[1]], description="Rows first.")
    parameters: Parameters | None = Field(
        None, description="`binary_data_size` if it follows the JSON."
    )
    data: list[Any] | None = Field(None, description="Values row by row, flat.")


class OipAnswer(BaseModel):
    """The response of a model."""

    model_name: str = Field(description="The calibration's name.")
    model_version: str = Field(description="The version that answered.")
    id: str | None = Field(None, description="The id of the request, if it had one.")
    outputs: list[OipOutputTensor] = Field(description="Outputs in the requested order.")
