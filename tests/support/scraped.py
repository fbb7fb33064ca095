"""Metrics as a scraper reads them."""

import httpx
from prometheus_client.parser import text_string_to_metric_families


class Scraped:
    """One scrape; samples are found by name and labels."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        """Return one sample, 0 if there is none."""
        return self._samples.get((f"howsure_{name}", frozenset(labels.items())), 0.0)

    def labels(self, name: str) -> list[dict[str, str]]:
        """Return the labels of every sample of this name."""
        return [dict(labels) for found, labels in self._samples if found == f"howsure_{name}"]


def scrape(client: httpx.Client) -> Scraped:
    answer = client.get("/metrics")
    assert answer.status_code == httpx.codes.OK
    return Scraped(answer.text)
