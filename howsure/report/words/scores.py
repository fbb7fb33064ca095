"""How scores of pairs are read."""

PERCENT = 100.0


def scores_note(least: float, most: float, *, probabilities: bool) -> str:
    """Say what baselines take scores for, which lie between these."""
    scale = "probabilities" if probabilities else "log-odds"
    note = f"Scores are read as {scale} by the baselines; bins take them as they are."
    is_percent = least >= 0.0 and 1.0 < most <= PERCENT
    return f"{note} Divide them by 100 if they are percentages." if is_percent else note
