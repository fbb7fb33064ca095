"""Schemas of the Open Inference Protocol, as the OpenAPI document shows them."""

from typing import Any

from pydantic import BaseModel, Field

Parameters = dict[str, str | int | float | bool]


class OipError(BaseModel):
    """What every failed request below `/v2` is answered with."""

    error: str = Field(
        examples=["calibration: there is no calibration 'digits'"],
        description="What happened, in a sentence.",
    )


class OipServer(BaseModel):
    """The server."""

    name: str = Field(examples=["howsure"], description="Always `howsure`.")
    version: str = Field(description="Of the service.")
    extensions: list[str] = Field(description="What it has beside the protocol's core.")


class OipReadiness(BaseModel):
    """The server, or a model, can answer."""

    ready: bool = Field(description="Always true: what is not ready is answered with an error.")


class OipLiveness(BaseModel):
    """The server answers."""

    live: bool = Field(description="Always true.")


class OipTensor(BaseModel):
    """A tensor that a model takes or gives."""

    name: str = Field(examples=["top1_probability"], description="Its name.")
    datatype: str = Field(examples=["FP32"], description="`BOOL`, `INT64`, `FP32`, …")
    shape: list[int] = Field(examples=[[-1]], description="-1 is any size; the first is the batch.")


class OipModel(BaseModel):
    """A calibration, as a model."""

    name: str = Field(examples=["digits"], description="The calibration's name.")
    versions: list[str] = Field(examples=[["1"]], description="Those that can answer.")
    platform: str = Field(
        examples=["onnxruntime_onnx"],
        description="`howsure` where the model runs elsewhere and its outputs are sent.",
    )
    inputs: list[OipTensor] = Field(description="What the model takes.")
    outputs: list[OipTensor] = Field(description="What an answer has.")


class OipConfigTensor(BaseModel):
    """A tensor in a configuration."""

    name: str = Field(examples=["topk_class"], description="Its name.")
    data_type: str = Field(examples=["TYPE_INT64"], description="`TYPE_` and the datatype.")
    dims: list[int] = Field(examples=[[5]], description="Of one row.")


class OipConfig(BaseModel):
    """The same in the words of Triton's model configuration."""

    name: str = Field(description="The calibration's name.")
    platform: str = Field(description="As in the metadata.")
    backend: str = Field(examples=["onnxruntime"], description="What runs the model.")
    version_policy: dict[str, Any] = Field(description="The version that this is.")
    max_batch_size: int = Field(examples=[10000], description="Most rows of a request.")
    input: list[OipConfigTensor] = Field(description="What the model takes.")
    output: list[OipConfigTensor] = Field(description="What an answer has.")


class OipModelStatistics(BaseModel):
    """What one version of a model has been asked by this protocol."""

    name: str = Field(description="The calibration's name.")
    version: str = Field(description="Its version.")
    last_inference: int = Field(description="Milliseconds since 1970, UTC; 0 if there was none.")
    inference_count: int = Field(description="Rows answered.")
    execution_count: int = Field(description="Requests answered.")
    inference_stats: dict[str, dict[str, int]] = Field(
        description="`count` and `ns` of `success`, `fail`, `queue`, `compute_input`, "
        "`compute_infer` and `compute_output`; there is no cache."
    )
    batch_stats: list[Any] = Field(description="Always empty.")


class OipStatistics(BaseModel):
    """Counts of this process, since it started."""

    model_stats: list[OipModelStatistics] = Field(description="One entry a version.")


class OipIndexEntry(BaseModel):
    """A version of a model."""

    name: str = Field(description="The calibration's name.")
    version: str = Field(description="Its version.")
    state: str = Field(examples=["READY"], description="`READY` or `UNAVAILABLE`.")
    reason: str = Field(
        examples=[""], description="Empty, or its status: `queued`, `running`, `failed`, …"
    )


class OipIndexRequest(BaseModel):
    """Which models are asked for."""

    ready: bool = Field(False, description="Only those that can answer.")


class OipInputTensor(BaseModel):
    """A tensor of a request: `data`, or bytes behind the JSON."""

    name: str = Field(examples=["inputs"], description="As the metadata have it.")
    shape: list[int] = Field(examples=[[1, 64]], description="Rows first.")
    datatype: str = Field(examples=["FP32"], description="Of what is sent.")
    parameters: Parameters | None = Field(
        None, description="`binary_data_size`, its bytes, where there is no `data`."
    )
    data: list[Any] | None = Field(None, description="Row by row, flat or nested as the shape is.")


class OipRequestedOutput(BaseModel):
    """An output that is asked for."""

    name: str = Field(examples=["top1_probability"], description="As the metadata have it.")
    parameters: Parameters | None = Field(None, description="`binary_data`: true for raw bytes.")


class OipRequest(BaseModel):
    """What is asked of a model."""

    id: str | None = Field(None, description="Given back in the answer.")
    parameters: Parameters | None = Field(
        None, description="`binary_data_output`, and `timeout` in microseconds; others are ignored."
    )
    inputs: list[OipInputTensor] = Field(description="All that the model takes.")
    outputs: list[OipRequestedOutput] | None = Field(None, description="All of them by default.")


class OipOutputTensor(BaseModel):
    """A tensor of an answer."""

    name: str = Field(examples=["top1_probability"], description="Its name.")
    datatype: str = Field(examples=["FP32"], description="Its type.")
    shape: list[int] = Field(examples=[[1]], description="Rows first.")
    parameters: Parameters | None = Field(
        None, description="`binary_data_size` where it follows the JSON."
    )
    data: list[Any] | None = Field(None, description="Row by row, flat.")


class OipAnswer(BaseModel):
    """What a model answers."""

    model_name: str = Field(description="The calibration's name.")
    model_version: str = Field(description="Its version, also where none was asked for.")
    id: str | None = Field(None, description="That of the request, if it had one.")
    outputs: list[OipOutputTensor] = Field(description="In the order asked for.")
