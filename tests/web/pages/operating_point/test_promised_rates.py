"""Error rates on the page: promised ones as entered, measured ones with their interval."""

import re

import httpx
import numpy as np
import pytest
from operating_point_page import address, history, save
from page_visitor import elements, text_of
from running_service import calibrated, npz, refit

SEE_OTHER = httpx.codes.SEE_OTHER


@pytest.mark.parametrize("rate", ["1.55", "2.549", "10.449"])
def test_a_promised_error_rate_is_shown_as_it_was_entered(
    service, visitor, undecided, rate
) -> None:
    """On the page, in the log and in the report."""
    page = text_of(visitor.open(address(undecided, by="risk", risk=rate, failing="7")).text)
    certificate = page[page.index("At most ") : page.index(", on data like the calibration set")]
    assert certificate.startswith(f"At most {rate} % of accepted answers are wrong, with ")
    assert certificate.endswith("93 % confidence")
    assert save(visitor, undecided).status_code == SEE_OTHER
    (point,) = history(service, undecided)
    assert point["chosen_by"] == {"max_risk": float(rate) / 100, "delta": 0.07}
    page = text_of(visitor.open(address(undecided)).text)
    assert f"error rate, {rate} %" in page[page.index("Decisions") :]
    active = page[page.index("Active: automatic") : page.index("Choose")]
    assert f"at most {rate} % of accepted answers are wrong, with " in active
    assert "% of answers are accepted." in active
    for form in ("", "&format=html"):
        report = text_of(visitor.open(f"/report?calibration={undecided}{form}").text)
        assert f": at most {rate} %, with " in report


@pytest.mark.parametrize("coverage", ["35", "80.5", "97"])
def test_the_proposed_error_rate_is_the_one_in_the_field_and_passes(
    visitor, calibration, coverage
) -> None:
    text = visitor.open(address(calibration, by="coverage", coverage=coverage)).text
    (proposed,) = re.findall(
        r"An error rate of at most ([\d.]+) % passes the test with this many", text_of(text)
    )
    field = next(a for tag, a in elements(text) if tag == "input" and a.get("name") == "risk")
    assert field["value"] == proposed
    again = text_of(visitor.open(address(calibration, by="risk", risk=proposed)).text)
    assert f"At most {proposed} % of accepted answers are wrong" in again


def test_small_error_rates_have_as_many_digits_as_their_interval_needs(service, visitor) -> None:
    """4 of 3000: 0.1 % (0.0 % to 0.3 %) could not be read."""
    wrong = np.arange(3000) % 750 == 5
    logits = np.column_stack([np.linspace(0.5, 4, 3000), np.zeros(3000)])
    content = npz(logits=logits, labels=wrong.astype(int))
    made = calibrated(service.client(), {"name": "rare", "top_k": [1]}, calibration=content)
    page = text_of(visitor.open(address(made["id"], by="coverage", coverage=100)).text)
    assert "0.13 % (0.04 % to 0.34 %): 4 of 3,000" in page
    assert "100.00 % (99.88 % to 100.00 %): 3,000 of 3,000" in page


NONE_MET = (
    "No threshold passes the test for an error rate of at most 0.05 %, so no answer is accepted."
)


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (
            (0.125, 0.0005),
            (
                r"It accepts [\d.]+ % of answers for an error rate of at most 12.5 %, "
                "none for an error rate of at most 0.05 %."
            ),
        ),
        ((0.0005,), NONE_MET),
        ((), "is( then)? empty: no error rate is configured."),
    ],
)
def test_the_page_says_what_abstain_follows_without_an_operating_point(
    service, visitor, calibration, rates, said
) -> None:
    selective = [{"max_risk": rate} for rate in rates]
    made = refit(service.client(), calibration, selective=selective).json()
    before = text_of(visitor.open(address(made["id"], by="coverage", coverage=50)).text)
    assert re.search(f"No operating point is active. abstain .*{said}", before)
    assert save(visitor, made["id"]).status_code == SEE_OTHER
    active = text_of(visitor.open(address(made["id"])).text)
    withdraw = active[active.index("Withdraw it") : active.index("Choose")]
    assert "then" in withdraw
    assert re.search(said, withdraw)
