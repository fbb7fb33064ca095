"""What a setting may be."""

import pytest
from pydantic import ValidationError

from service.runner.devices import requested_devices
from service.settings import Settings

NUMBERS = ("0", "10", "9999")
REFUSED = (
    "",
    "gpu",
    "CPU",
    "cuda:",
    "cuda:01",
    "cuda:10000",
    "cuda:x",
    "cuda:-1",
    "cuda:٣",
)
REFUSED += (
    "cuda:0,",
    ",cuda:0",
    "cuda:0, cuda:1",
    "cuda:0,cpu",
    "auto,cuda:0",
    "cpu\n",
)
TAKEN = ("auto", "cpu", "cuda", "cuda:0,cuda:1", "cuda:3,cuda:0,cuda:12")
TAKEN += tuple(f"cuda:{number}" for number in NUMBERS)


@pytest.mark.parametrize("device", TAKEN)
def test_devices_that_may_be_asked_for(device):
    assert Settings(_env_file=None, device=device).device == device
    requested_devices(device)


@pytest.mark.parametrize("device", [*REFUSED, "cuda:0,cuda:0", "cuda:1,cuda:0,cuda:1"])
def test_devices_that_may_not(device):
    with pytest.raises(ValidationError, match="device"):
        Settings(_env_file=None, device=device)
    with pytest.raises(ValueError, match="device"):
        requested_devices(device)
