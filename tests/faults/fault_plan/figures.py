"""The result of a fault test: one line for programs, and a sentence."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
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

    @property
    def longest_recovery(self) -> float:
        return round(max(self.recovery_seconds, default=0.0), 2)

    def line(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(
            {
                "fault": self.fault,
                "seed": self.seed,
                "fired": self.fired,
                "struck": dict(self.struck),
                "jobs": dict(self.jobs),
                "longest_recovery_s": self.longest_recovery,
                **self.more,
                "violations": len(self.violations),
            }
        )

    def sentence(self) -> str:
        """Return the result in words, with the first violation."""
        holds = "nothing was lost, doubled or half done"
        end = f"{len(self.violations)} violations" if self.violations else holds
        struck = f" ({_listed(self.struck)})" if self.struck else ""
        recovery = f"longest recovery {self.longest_recovery} s; " if self.recovery_seconds else ""
        said = (
            f"{self.fault}, seed {self.seed}: {self.fired} times{struck}; "
            f"jobs: {_listed(self.jobs)}; {recovery}{end}."
        )
        return "\n  ".join([said, *self.violations[:MOST_SHOWN]])


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"
