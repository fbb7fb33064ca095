"""Attacks: images near others that a model gets wrong."""

import numpy as np

from attack.attacked_model import Attacked, Images, Labels

RADII = np.array([0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2])  # of the largest distance


def largest_distance(model: Attacked, images: Images) -> float:
    """Return the distance between the opposite corners of the space of images."""
    return (model.most - model.least) * float(np.sqrt(images[0].size))


def norms(images: Images) -> Images:
    """Return the L2 norm of each image, shape (n, 1, 1, 1)."""
    return np.sqrt(np.square(images).sum(axis=(1, 2, 3), keepdims=True))


def pgd(
    model: Attacked,
    images: Images,
    labels: Labels,
    radius: float,
    rng: np.random.Generator,
    steps: int = 40,
) -> Images:
    """Return images of larger loss within an L2 ball, from a random start."""
    offset = rng.standard_normal(images.shape, np.float32)
    offset *= np.float32(radius) * rng.random((len(images), 1, 1, 1), np.float32) / norms(offset)
    for _ in range(steps):
        moved = np.clip(images + offset, model.least, model.most)
        gradient, _ = model.margin_gradient(moved, labels)
        step = gradient / np.maximum(norms(gradient), 1e-12) * np.float32(radius / 8)
        offset = moved - images - step
        offset *= np.minimum(1.0, np.float32(radius) / np.maximum(norms(offset), 1e-12))
    return np.clip(images + offset, model.least, model.most)


def smallest_pgd(
    model: Attacked, images: Images, labels: Labels, rng: np.random.Generator
) -> Images:
    """Return the attack of the smallest radius that succeeds."""
    attacked, scale = images.copy(), largest_distance(model, images)
    remaining = np.arange(len(images))
    for radius in (RADII * scale).tolist():
        moved = pgd(model, images[remaining], labels[remaining], radius, rng)
        errs = model.errs(moved, labels[remaining])
        attacked[remaining[errs]] = moved[errs]
        remaining = remaining[~errs]
        if not len(remaining):
            break
    return attacked


def carlini_wagner(
    model: Attacked, images: Images, labels: Labels, searches: int = 6, steps: int = 150
) -> Images:
    """Return the nearest images that err: section V-A and VI-A of Carlini and Wagner 2017."""
    width = model.most - model.least
    start = np.arctanh((2 * (images - model.least) / width - 1) * 0.999)
    best, nearest = images.copy(), np.full(len(images), np.inf)
    low, high = np.zeros(len(images)), np.full(len(images), np.inf)
    factor = np.full(len(images), 0.1)
    for _ in range(searches):
        point, first, second = start.copy(), np.zeros_like(start), np.zeros_like(start)
        succeeded = np.zeros(len(images), np.bool_)
        for step in range(1, steps + 1):
            tanh = np.tanh(point)
            moved = (model.least + width * (tanh + 1) / 2).astype(np.float32)
            gradient, margin = model.margin_gradient(moved, labels)
            distance = norms(moved - images).ravel()
            is_best = (margin < 0) & (distance < nearest)
            best[is_best], nearest[is_best] = moved[is_best], distance[is_best]
            succeeded |= margin < 0
            active = (factor * (margin > 0)).reshape(-1, 1, 1, 1)
            # Distances are squared in units of the range.
            slope = 2 * (moved - images) / width**2 + active * gradient
            slope = (slope * (1 - tanh**2) * width / 2).astype(np.float32)
            first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
            scaled = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            point = point - 0.02 * first / (1 - 0.9**step) / scaled
        high = np.where(succeeded, np.minimum(high, factor), high)
        low = np.where(succeeded, low, np.maximum(low, factor))
        factor = np.where(np.isfinite(high), (low + high) / 2, factor * 10)
    return best


def boundary(
    model: Attacked,
    images: Images,
    labels: Labels,
    others: Images,
    rng: np.random.Generator,
    steps: int = 4000,
) -> Images:
    """Return images near the boundary, by a walk along it: Brendel et al. 2018."""
    classes = model.logits(others).argmax(axis=1)
    near = [
        others[classes != label][norms(others[classes != label] - image).argmin()]
        for image, label in zip(images, labels, strict=True)
    ]
    attacked = np.stack(near)
    # A step aside moves a plain boundary by this much less.
    scale = np.float32(np.sqrt(images[0].size))
    aside = np.full((len(images), 1, 1, 1), 0.3, np.float32)
    for _ in range(steps):
        toward = images - attacked
        distance = norms(toward)
        noise = rng.standard_normal(images.shape, np.float32)
        along = (noise * toward).sum(axis=(1, 2, 3), keepdims=True)
        noise -= along / distance**2 * toward
        sphere = attacked + noise / norms(noise) * aside * distance - images
        moved = images + sphere / norms(sphere) * distance * (1 - aside / scale)
        moved = np.clip(moved, model.least, model.most).astype(np.float32)
        errs = model.errs(moved, labels).reshape(-1, 1, 1, 1)
        attacked = np.where(errs & (norms(moved - images) < distance), moved, attacked)
        aside = np.clip(np.where(errs, aside * 1.05, aside * 0.98), 1e-3, 0.5)
    return attacked
