"""Prediction requests of connections, without the web framework."""

import asyncio
from dataclasses import KW_ONLY, dataclass
from urllib.parse import parse_qs

import msgspec

from service.access.api_keys import PREDICT as MAY_PREDICT
from service.access.api_keys import Caller
from service.access.authenticator import ActiveKeys, Authenticator
from service.access.credentials import authorization
from service.access.origins import AllowedOrigins
from service.access.rate_limits import TenantLimiter
from service.child.requests.limits import reject_calibration, require_calibration
from service.child.requests.media_types import BODIES, JSON, NPZ, SETS
from service.child.requests.open_inference import ENCODINGS, LENGTH_HEADER
from service.errors import (
    InvalidInput,
    MalformedRequest,
    Overloaded,
    ServiceError,
    UnsupportedFormat,
    shown,
)
from service.http.bodies import encoding_refused, is_plain
from service.http.negotiation import chosen_format
from service.http.prediction_exchange import (
    PREDICT,
    GiveUp,
    Headers,
    HttpResponse,
    ReceivedRequest,
    RequestHead,
)
from service.http.problems import CLIENT_LEFT, problem_response
from service.http.request_record import RequestLog
from service.http.response_head import new_id
from service.metrics.metrics import RequestMetrics
from service.predictions.oip_models import reference_of
from service.predictions.prediction_request import (
    POSITIONAL,
    AnswerForm,
    PredictionAnswer,
    PredictionOptions,
    PredictionRequest,
)
from service.predictions.service import IDENTITY, OIP, PredictionService
from service.shared_amounts import NOBODY

ANSWERS: dict[AnswerForm, str] = {"json": JSON, "npz": NPZ}
BINARY = "application/octet-stream"
# An int: access to members of HTTPStatus is slower.
OK = 200
LEFT = "client-left"
INTERNAL = "internal-error"
SCOPE = (MAY_PREDICT,)
_LENGTH = LENGTH_HEADER.lower().encode()

_OF_JSON = ((b"content-type", JSON.encode()),)


@dataclass(eq=False, repr=False)
class PredictionApp:
    """Answers prediction requests; implements `PredictionHandler`."""

    metrics: RequestMetrics
    _: KW_ONLY
    request_log: RequestLog
    allowed_origins: AllowedOrigins
    max_body_bytes: int
    timeout_seconds: float

    def __post_init__(self) -> None:
        self._service: PredictionService | None = None
        self._authenticator: Authenticator | None = None

    def open(self, predicting: PredictionService, authenticator: Authenticator) -> None:
        """Start answering; before this call requests are refused."""
        self._service = predicting
        self._authenticator = authenticator

    @property
    def predicting(self) -> PredictionService:
        """The service that answers all predictions."""
        if self._service is None:
            raise Overloaded("The service is starting.", retry_after=1)
        return self._service

    def authenticate(self, head: RequestHead) -> TenantLimiter:
        """Authenticate the caller; the result holds as long as the active keys do not change."""
        return self._known(head).meter

    def begin(self, request: ReceivedRequest) -> GiveUp:
        """Answer a request by calling its ``reply`` once, unless it is dropped before."""
        head, request.holder = request.head, NOBODY
        try:
            known, predicting = self._known(head), self.predicting
            meter = known.meter
            request.holder = meter.holder
            if meter.requests is not None:
                meter.requests.take()
            options = known.options
            if options is None:
                options = known.options = prediction_options(head, self.timeout_seconds)
        except ServiceError as error:
            answer = self.refuse(
                head, error, arrived=request.arrived, request_id=request.request_id
            )
            request.reply(answer)
            return _nothing
        prediction = _Prediction(
            asker=predicting,
            tenant_id=known.caller.tenant_id,
            body=request.body,
            arrived=request.arrived,
            options=options,
            timeout=options.timeout,
            rows=meter.rows,
            holder=meter.holder,
            app=self,
            request=request,
        )
        predicting.begin(prediction)
        return prediction.give_up

    def _known(self, head: RequestHead) -> "_Known":
        authenticator = self._authenticator
        if authenticator is None:
            raise Overloaded("The service is starting.", retry_after=1)
        known: _Known | None = head.memo
        if known is None or known.ring is not authenticator.ring:
            ring = authenticator.ring
            caller = authenticator.admit(authorization(head.headers), SCOPE)
            self.allowed_origins.check("POST", head.headers, is_open=caller.key_id is None)
            check_encoding(head)
            options = None if known is None else known.options
            known = head.memo = _Known(ring, caller, options, caller.meter)
        else:
            known.caller.is_used = True
        return known

    def refuse(
        self, head: RequestHead, error: Exception, *, arrived: float, request_id: bytes
    ) -> HttpResponse:
        """Return the answer to a request that failed, and count it."""
        answer = problem_response(head.route, error, request_id)
        reason = error.code() if isinstance(error, ServiceError) else INTERNAL
        self.count(head, answer.status, arrived, reason, answer.request_id)
        return answer

    def client_disconnected(self, head: RequestHead, *, arrived: float, request_id: bytes) -> None:
        """Count a request whose client left before it was answered."""
        self.count(head, CLIENT_LEFT, arrived, LEFT, request_id)

    def count(
        self,
        head: RequestHead,
        status: int,
        arrived: float,
        failure: str | None,
        request_id: bytes,
    ) -> None:
        """Count a request that is over."""
        seconds = asyncio.get_running_loop().time() - arrived
        route, known = head.route, head.memo
        self.metrics.answered("POST", route, status=status, seconds=seconds, failure=failure)
        self.request_log.answered(
            "POST",
            route,
            status=status,
            seconds=seconds,
            request_id=request_id.decode(),
            caller=None if known is None else known.caller,
            failure=failure,
        )


class _Known(msgspec.Struct, eq=False):
    """The caller and the options of a request head, valid for one set of active keys."""

    ring: ActiveKeys
    caller: Caller
    options: PredictionOptions | None
    meter: TenantLimiter


def prediction_options(head: RequestHead, longest: float) -> PredictionOptions:
    """Return the options of a request head; ``longest`` limits its timeout."""
    headers = dict(head.headers)
    timeout = _seconds(headers.get(b"timeout"), longest)
    encoding = headers.get(b"content-encoding", IDENTITY.encode()).decode("latin-1")
    encoding = encoding.strip().lower()
    if head.route == PREDICT:
        media_type = _media_type(headers.get(b"content-type"))
        form = chosen_format(headers.get(b"accept", b"*/*").decode("latin-1"), ANSWERS)
        reference = _calibration(head.query)
        if media_type == JSON:
            reject_calibration(reference)
        else:
            reference = require_calibration(reference)
        return PredictionOptions(media_type, reference, form, timeout, encoding)
    given, length = head.parameters, headers.get(_LENGTH)
    return PredictionOptions(
        media_type=OIP,
        reference=reference_of(given["model_name"], given.get("model_version")),
        form="oip",
        timeout=timeout,
        encoding=encoding,
        header_length=None if length is None else length.decode("latin-1"),
    )


class _Prediction(PredictionRequest, eq=False, kw_only=True):
    """One request of a connection."""

    app: PredictionApp
    request: ReceivedRequest

    def done(self, answer: PredictionAnswer) -> None:
        request = self.request
        request_id = request.request_id or new_id()
        self.app.count(request.head, OK, self.arrived, None, request_id)
        request.reply(
            HttpResponse(OK, answer.body, answer_headers(answer, self.options), request_id)
        )

    def failed(self, error: Exception) -> None:
        request = self.request
        answer = self.app.refuse(
            request.head, error, arrived=self.arrived, request_id=request.request_id
        )
        request.reply(answer)

    def give_up(self) -> None:
        if not self.is_settled:
            self.drop()
            request = self.request
            self.app.client_disconnected(
                request.head, arrived=self.arrived, request_id=request.request_id
            )


def answer_headers(answer: PredictionAnswer, options: PredictionOptions) -> Headers:
    """Return the headers that depend on the answer."""
    if answer.header_length is not None:
        return (
            (b"content-type", BINARY.encode()),
            (_LENGTH, b"%d" % answer.header_length),
        )
    if options.form != "npz":
        return _OF_JSON
    ref = answer.ref
    named = f"id={ref.id}; name={ref.name}; version={ref.version}"
    if answer.by_position:
        named += f"; columns={POSITIONAL}"
    return ((b"content-type", NPZ.encode()), (b"howsure-calibration", _header(named)))


FORM = "application/x-www-form-urlencoded"


def _media_type(content_type: bytes | None) -> str:
    if content_type is None:
        return JSON
    media_type = content_type.decode("latin-1").partition(";")[0].strip().lower()
    if media_type not in BODIES and media_type not in SETS:
        # What curl -d sends without a header.
        fix = f"; with curl write -H 'Content-Type: {JSON}'" if media_type == FORM else ""
        raise UnsupportedFormat.at(
            "Content-Type", f"expected {', '.join((*BODIES, *SETS))}, got {media_type!a}{fix}"
        )
    return media_type


def check_encoding(head: RequestHead) -> None:
    """Refuse compressed bodies, except those of the Open Inference Protocol.

    Raises
    ------
    UnsupportedFormat
        If the route does not accept the body's encoding.
    """
    known = (IDENTITY,) if head.route == PREDICT else ENCODINGS
    for name, value in head.headers:
        if name == b"content-encoding" and not is_plain(value, known):
            raise encoding_refused(known)


def _calibration(query: bytes) -> str | None:
    if not query:
        return None
    try:
        found = parse_qs(query.decode("ascii"), errors="strict", keep_blank_values=True)
    except ValueError as error:
        raise MalformedRequest.at("query", "expected percent-encoded UTF-8") from error
    return found.get("calibration", [None])[-1]


def _seconds(timeout: bytes | None, default: float) -> float:
    if timeout is None:
        return default
    try:
        # Python accepts underscores in numbers.
        seconds = 0.0 if b"_" in timeout else float(timeout)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        got = shown(timeout.decode("latin-1"))
        raise InvalidInput.at("Timeout", f"expected seconds, a number above 0, got {got}")
    return min(seconds, default)


def _header(text: str) -> bytes:
    return text.encode("latin-1", errors="replace")


def _nothing() -> None:
    """Do nothing: the request is over."""
