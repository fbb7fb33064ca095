"""The result of a fault test: one line for programs, and a sentence."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_SHOWN = 20


@dataclass
class Figures:
    """How often and where a fault struck, the outcome of the jobs, and broken rules."""

    fault: str
    seed: int
    fired: int = 0
    struck: Counter = field(default_factory=Counter)
    jobs: Counter = field(default_factory=Counter)
    recovery_seconds: list[float] = field(default_factory=list)
    more: dict[str, object] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def strike(self, places: Iterable[str]) -> None:
        """Count a fault that struck these jobs, or none."""
        self.fired += 1
        self.struck.update(list(places) or ["no job"])

    def violate(self, *what: str) -> None:
        """Note broken rules."""
        self.violations += what

    def line(self) -> str:
        """Return the result as one line of JSON."""
        names = ("fault", "seed", "fired", "struck", "jobs")
        figures = {name: getattr(self, name) for name in names} | self.more
        longest = round(max(self.recovery_seconds, default=0.0), 2)
        return json.dumps(
            figures | {"longest_recovery_s": longest, "violations": len(self.violations)}
        )

    def sentence(self) -> str:
        """Return the result in words, with the first violations."""
        said = f"{self.fault}, seed {self.seed}: {self.fired} times, "
        said += f"{len(self.violations) or 'no'} rules broken."
        return "\n  ".join([said, *self.violations[:MOST_SHOWN]])
