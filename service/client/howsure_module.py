"""How sure is a classifier, really? Its calibrated probabilities, from a service that runs."""

from service.client import *  # noqa: F403 - the same, under the name of the product
from service.client import __all__  # noqa: F401 - what that brings
