"""What scores say, in a sentence each; `docs/statistics.md` has a section of the same name."""

from dataclasses import dataclass

DOCS = "docs/statistics.md"


@dataclass(frozen=True)
class ScoreWords:
    """A score as pages tell of it.

    Attributes
    ----------
    name : str
        As in the report.
    heading : str
        Of a column.
    form : str
        Which of the forms of `words` its values have.
    sentence : str
    """

    name: str
    heading: str
    form: str
    sentence: str

    @property
    def docs(self) -> str:
        """Return where it is defined."""
        return f"{DOCS}#{self.name}"


SCORES = (
    ScoreWords(
        "nll",
        "NLL",
        "number",
        "Negative log-likelihood: how surprised one is by what came true who believed the "
        "probabilities. It punishes being sure and wrong most; smaller is better, and the least "
        "serves.",
    ),
    ScoreWords(
        "brier",
        "Brier",
        "number",
        "The mean square of what the probability was off from what came true, 1 or 0; smaller is "
        "better.",
    ),
    ScoreWords(
        "ece_15",
        "ECE, 15 bins",
        "number",
        "Calibration error: how far the probability said is from how often it came true, on "
        "average over 15 bins of probability; smaller is better. Any probability has it, so "
        "baselines compare by it.",
    ),
    ScoreWords(
        "ece",
        "ECE, own bins",
        "number",
        "The same over the bins that answer, on samples that did not fit them; smaller is better. "
        "What has no bins has none.",
    ),
    ScoreWords(
        "auroc",
        "AUROC",
        "number",
        "Detection of errors: how often an error is more uncertain than what is right; 0.5 is "
        "chance, larger is better.",
    ),
    ScoreWords(
        "aurc",
        "AURC",
        "short",
        "The error rate among what is accepted, the surest first, on average over all shares that "
        "may be accepted; smaller is better.",
    ),
    ScoreWords(
        "eor",
        "EOR",
        "short",
        "Expected odds ratio: by what factor knowing the bin moves the odds of being right, on "
        "average; 1 is nothing, larger is better, and only between tables of as many bins.",
    ),
    ScoreWords(
        "conditional_entropy",
        "Entropy left, bits",
        "number",
        "What is left to learn, once the bin is known, of whether it is right; smaller is better.",
    ),
)
