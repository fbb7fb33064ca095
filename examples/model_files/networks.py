"""The networks `make_pass_models.py` trains and exports: small, each with a noise of its own."""

import math

import torch
from torch import nn
from torch.nn import functional

N_CLASSES = 10
VOCABULARY = 24
SEQUENCE_CLASSES = 3


def convolutions(after_first: nn.Module, after_second: nn.Module) -> nn.Sequential:
    """Return two convolutions for (n, 1, 8, 8) images, giving (n, 64), with these layers between.

    ``after_first`` sees (n, 8, 4, 4), ``after_second`` (n, 64).
    """
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        after_first,
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        after_second,
    )


def small_cnn(
    *,
    after_first: nn.Module | None = None,
    after_second: nn.Module | None = None,
    before_last: nn.Module | None = None,
) -> nn.Sequential:
    """Return the CNN of most files here, with these layers in it."""
    return nn.Sequential(
        convolutions(after_first or nn.Identity(), after_second or nn.Identity()),
        nn.Linear(64, 32),
        nn.ReLU(),
        before_last or nn.Identity(),
        nn.Linear(32, N_CLASSES),
    )


def squeezenet_like() -> nn.Sequential:
    """Return a CNN that ends as SqueezeNet does: the scores are means of rectified maps."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 32, 3, padding=1),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Conv2d(32, N_CLASSES, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
    )


def member(hidden: int, *, n_classes: int = N_CLASSES, flat: bool = False) -> nn.Sequential:
    """Return a dense network for (n, 1, 8, 8) images, or for (n, 64) where ``flat``."""
    first = nn.Identity() if flat else nn.Flatten()
    return nn.Sequential(first, nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, n_classes))


class VariationalLinear(nn.Module):
    """A dense layer whose weights are drawn anew each time, shared by all rows.

    Blundell et al., "Weight Uncertainty in Neural Networks", section 3.2: the weight is
    ``mean + log(1 + exp(rho)) * noise``.
    """

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_outputs, n_inputs) / math.sqrt(n_inputs))
        self.weight_rho = nn.Parameter(torch.full((n_outputs, n_inputs), -3.0))
        self.bias = nn.Parameter(torch.zeros(n_outputs))
        self.bias_rho = nn.Parameter(torch.full((n_outputs,), -3.0))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        weight = drawn(self.weight, self.weight_rho)
        return functional.linear(inputs, weight, drawn(self.bias, self.bias_rho))

    def divergence(self) -> torch.Tensor:
        """Return the KL divergence from a standard normal prior."""
        pairs = ((self.weight, self.weight_rho), (self.bias, self.bias_rho))
        return sum((gaussian_divergence(mean, spread(rho)) for mean, rho in pairs), torch.zeros(()))


def drawn(mean: torch.Tensor, rho: torch.Tensor) -> torch.Tensor:
    return mean + spread(rho) * torch.randn_like(mean)


def spread(rho: torch.Tensor) -> torch.Tensor:
    return torch.log1p(torch.exp(rho))


def gaussian_divergence(mean: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return 0.5 * (mean**2 + scale**2 - 2 * torch.log(scale) - 1).sum()


def variational_mlp() -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), VariationalLinear(64, 24), nn.ReLU(), VariationalLinear(24, N_CLASSES)
    )


class SequenceClassifier(nn.Module):
    """Tokens (n, t) to scores: embedding, one head of attention, a mean over the tokens.

    Dropout on the activations (n, t, d) and on what the last layer sees.
    """

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.queries = nn.Linear(width, width)
        self.keys = nn.Linear(width, width)
        self.hidden = nn.Linear(width, width)
        self.activation_dropout = nn.Dropout(0.1)
        self.last_dropout = nn.Dropout(0.2)
        self.last = nn.Linear(width, SEQUENCE_CLASSES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        likeness = self.queries(x) @ self.keys(x).transpose(1, 2)
        x = x + torch.softmax(likeness / math.sqrt(x.shape[-1]), dim=-1) @ x
        x = self.activation_dropout(torch.relu(self.hidden(x)))
        return self.last(self.last_dropout(x.mean(dim=1)))
