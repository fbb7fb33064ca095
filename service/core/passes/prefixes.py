"""How many of the passes are looked at, to see what fewer of them would do."""

USUAL_PASSES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500)


def prefixes(passes: int) -> tuple[int, ...]:
    """Return the usual numbers of passes below ``passes``, and itself, ascending.

    Raises
    ------
    ValueError
        If there is no pass.
    """
    if passes < 1:
        raise ValueError(f"passes must be at least 1, not {passes}")
    return (*(n for n in USUAL_PASSES if n < passes), passes)
