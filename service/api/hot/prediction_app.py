"""What answers hot requests: headers in, the operation, problems and counts out."""

import asyncio
from urllib.parse import parse_qs

import msgspec
import structlog

from service.api.access.bearer import authorization
from service.api.access.sites import Sites
from service.api.body import encoding_refused, is_plain
from service.api.hot.exchange import GiveUp, Headers, HotAnswer, HotRequest, RequestHead
from service.api.hot.refusal import refusal
from service.api.hot.routes import PREDICT
from service.api.negotiation import chosen_format
from service.api.request_id import new_id
from service.api.request_log import CLIENT_LEFT, RequestLog
from service.bodies import BODIES, JSON, NPZ
from service.bodies.oip.body import ENCODINGS, LENGTH_HEADER
from service.bodies.parameter import refuse, required
from service.errors import (
    InvalidInput,
    MalformedRequest,
    Overloaded,
    ServiceError,
    UnsupportedFormat,
    shown,
)
from service.metrics import RequestMetrics
from service.operations.api_keys import PREDICT as MAY_PREDICT
from service.operations.api_keys import Caller, Doorkeeper, KeyRing, require_scope
from service.operations.asked_prediction import (
    AnswerForm,
    AskedPrediction,
    PredictionAnswer,
    PredictionTerms,
)
from service.operations.oip.repository import reference_of
from service.operations.predicting import IDENTITY, OIP, Predicting
from service.operations.tenants import TenantMeter

ANSWERS: dict[AnswerForm, str] = {"json": JSON, "npz": NPZ}
BINARY = "application/octet-stream"
# Numbers: to look at a member of HTTPStatus takes longer.
OK = 200
LEFT = "client-left"
INTERNAL = "internal-error"
SCOPE = (MAY_PREDICT,)
_LENGTH = LENGTH_HEADER.lower().encode()

log = structlog.get_logger(__name__)

_OF_JSON = ((b"content-type", JSON.encode()),)


class PredictionApp:
    """Answers hot requests; see `HotApp`."""

    def __init__(
        self,
        metrics: RequestMetrics,
        *,
        request_log: RequestLog,
        sites: Sites,
        max_body_bytes: int,
        timeout_seconds: float,
    ) -> None:
        self._predicting: Predicting | None = None
        self._doorkeeper: Doorkeeper | None = None
        self._metrics = metrics
        self._sites = sites
        self._log = request_log
        self._max_body_bytes = max_body_bytes
        self._timeout = timeout_seconds

    def open(self, predicting: Predicting, doorkeeper: Doorkeeper) -> None:
        """Begin to answer; until then requests are refused."""
        self._predicting = predicting
        self._doorkeeper = doorkeeper

    @property
    def max_body_bytes(self) -> int:
        """Longest body that is received."""
        return self._max_body_bytes

    def admit(self, head: RequestHead) -> TenantMeter:
        """Look who asks; once is enough for as long as the same keys are good."""
        if self._doorkeeper is None:
            raise Overloaded("The service is starting.", retry_after=1)
        return self._known(head, self._doorkeeper).meter

    def begin(self, request: HotRequest) -> GiveUp:
        """Answer a request by calling its ``reply`` once, unless it is given up before."""
        predicting, doorkeeper, head = self._predicting, self._doorkeeper, request.head
        try:
            if predicting is None or doorkeeper is None:
                raise Overloaded("The service is starting.", retry_after=1)
            known = self._known(head, doorkeeper)
            meter = known.meter
            if meter.requests is not None:
                meter.requests.take()
            terms = known.terms
            if terms is None:
                terms = known.terms = _terms(head, self._timeout)
        except ServiceError as error:
            request.reply(self.refuse(head, error, arrived=request.arrived))
            return _nothing
        exchange = _Exchange(
            asker=predicting,
            tenant_id=known.caller.tenant_id,
            body=request.body,
            arrived=request.arrived,
            terms=terms,
            timeout=terms.timeout,
            rows=meter.rows,
            share=meter.share,
            app=self,
            request=request,
        )
        try:
            predicting.begin(exchange)
        except Exception as error:
            # A bug; it is answered and counted all the same.
            log.exception("unexpected_error", path=head.route)
            exchange.fail(error)
        return exchange.give_up

    def _known(self, head: RequestHead, doorkeeper: Doorkeeper) -> "_Known":
        known: _Known | None = head.memo
        if known is None or known.ring is not doorkeeper.ring:
            ring = doorkeeper.ring
            caller = _let_in(head, doorkeeper)
            self._sites.check("POST", head.headers, is_open=caller.key_id is None)
            _check_encoding(head)
            terms = None if known is None else known.terms
            known = head.memo = _Known(ring, caller, terms, caller.meter)
        else:
            known.caller.is_used = True
        return known

    def refuse(self, head: RequestHead, error: Exception, *, arrived: float) -> HotAnswer:
        """Return the answer to a request that failed, and count it."""
        request_id = head.request_id or new_id()
        answer = refusal(head.route.encode(), error, request_id)
        reason = error.code() if isinstance(error, ServiceError) else INTERNAL
        self.count(head, answer.status, arrived, reason, request_id)
        return answer

    def broke_off(self, head: RequestHead, *, arrived: float) -> None:
        """Count a request whose client left before it was received whole."""
        self.count(head, CLIENT_LEFT, arrived, LEFT, head.request_id)

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
        self._metrics.answered("POST", route, status=status, seconds=seconds, failure=failure)
        self._log.answered(
            "POST",
            route,
            status=status,
            seconds=seconds,
            request_id=request_id.decode(),
            caller=None if known is None else known.caller,
            failure=failure,
        )


class _Known(msgspec.Struct, eq=False):
    """What a head was found to say, and by which keys."""

    ring: KeyRing
    caller: Caller
    terms: PredictionTerms | None
    meter: TenantMeter


def _let_in(head: RequestHead, doorkeeper: Doorkeeper) -> Caller:
    if head.caller is None:
        return doorkeeper.admit(authorization(head.headers), SCOPE, head.peer)
    require_scope(head.caller, SCOPE)
    return head.caller


def _terms(head: RequestHead, longest: float) -> PredictionTerms:
    """Return what all but the body says of a request."""
    headers = dict(head.headers)
    timeout = _seconds(headers.get(b"timeout"), longest)
    encoding = headers.get(b"content-encoding", IDENTITY.encode()).decode("latin-1")
    encoding = encoding.strip().lower()
    if head.route == PREDICT:
        media_type = _media_type(headers.get(b"content-type"))
        form = chosen_format(headers.get(b"accept", b"*/*").decode("latin-1"), ANSWERS)
        reference = _calibration(head.query)
        if media_type == JSON:
            refuse(reference)
        else:
            reference = required(reference)
        return PredictionTerms(media_type, reference, form, timeout, encoding)
    given, length = head.parameters, headers.get(_LENGTH)
    return PredictionTerms(
        media_type=OIP,
        reference=reference_of(given["model_name"], given.get("model_version")),
        form="oip",
        timeout=timeout,
        encoding=encoding,
        header_length=None if length is None else length.decode("latin-1"),
    )


class _Exchange(AskedPrediction, eq=False, kw_only=True):
    """One request under way, from the operation's answer to the caller's."""

    app: PredictionApp
    request: HotRequest

    def done(self, answer: PredictionAnswer) -> None:
        head = self.request.head
        request_id = head.request_id or new_id()
        self.app.count(head, OK, self.arrived, None, request_id)
        self.request.reply(HotAnswer(OK, answer.body, self._headers(answer), request_id))

    def failed(self, error: Exception) -> None:
        self.request.reply(self.app.refuse(self.request.head, error, arrived=self.arrived))

    def give_up(self) -> None:
        if not self.is_told:
            self.drop()
            self.app.broke_off(self.request.head, arrived=self.arrived)

    def _headers(self, answer: PredictionAnswer) -> Headers:
        if answer.header_length is not None:
            return (
                (b"content-type", BINARY.encode()),
                (_LENGTH, b"%d" % answer.header_length),
            )
        if self.terms.form != "npz":
            return _OF_JSON
        ref = answer.ref
        named = f"id={ref.id}; name={ref.name}; version={ref.version}"
        return ((b"content-type", NPZ.encode()), (b"howsure-calibration", _header(named)))


def _media_type(content_type: bytes | None) -> str:
    if content_type is None:
        return JSON
    media_type = content_type.decode("latin-1").partition(";")[0].strip().lower()
    if media_type not in BODIES:
        raise UnsupportedFormat.at(
            "Content-Type", f"expected {', '.join(BODIES)}, got {media_type!a}"
        )
    return media_type


def _check_encoding(head: RequestHead) -> None:
    """Refuse what is packed; only the protocol has it, and the processes of models unpack that."""
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
        # Python takes what has underscores for a number.
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
