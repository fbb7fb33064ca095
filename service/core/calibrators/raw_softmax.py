"""The model's own softmax, as it comes."""

from service.core.arrays import BinIndex
from service.core.calibrators.calibrator import Calibrator, Confidence, Fitted
from service.core.cut_points import merge_underflow
from service.core.measures import column
from service.core.records import Records


def fit_raw_softmax(_records: Records, k: int, _rows: BinIndex) -> Fitted:
    """Return the mass of the ``k`` top classes, which needs no fit: Guo et al. 2017, section 2."""

    def predict(records: Records) -> Confidence:
        return Confidence(
            probability=records.raw_probability(k),
            uncertainty=merge_underflow(records.uncertainty[column("neg_log_topk_mass", k)]),
        )

    return Fitted(predict)


CALIBRATOR = Calibrator(
    "raw_softmax",
    "the model's own probability: that of its top class, or the mass of its k top classes",
    fit_raw_softmax,
    learns=False,
)
