"""ONNX models' files at hand on this machine, for as long as somebody may load them."""

import weakref
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import models
from service.lru_cache import LruCache
from service.runner.messages.onnx_models import OnnxMember, OnnxModelFiles
from service.storage.artifact_rows import NewArtifact
from service.storage.artifact_store import ArtifactStore

KEPT_MODELS = 2

ModelFile: TypeAlias = models.Artifact | NewArtifact


class OpenModel:
    """A model's files, which stay at hand while anybody holds this."""

    def __init__(self, artifacts: ArtifactStore, files: Iterable[ModelFile], tenant: str) -> None:
        with ExitStack() as opened:
            self.files = open_files(artifacts, files, opened, tenant=tenant)
            weakref.finalize(self, opened.pop_all().close)


class OpenModels:
    """The models that were opened last: who asks for one again need not read it again."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self._artifacts = artifacts
        self._open: LruCache[tuple[str, ...], OpenModel] = LruCache(KEPT_MODELS)

    def open(self, files: Sequence[ModelFile], *, tenant: str) -> OpenModel:
        """Return the files of a tenant's model, as they were checked against their digests.

        Raises
        ------
        ArtifactDamaged, StorageFull, Overloaded
            As `ArtifactStore.local_path`.
        """
        key = tuple(sorted(file.key for file in files))
        return self._open.get_or_load(key, lambda: OpenModel(self._artifacts, files, tenant))


def open_files(
    artifacts: ArtifactStore, files: Iterable[ModelFile], opened: ExitStack, *, tenant: str
) -> OnnxModelFiles:
    """Return the files of a tenant's model on this machine, checked against their digests."""

    def local(artifact: ModelFile) -> Path:
        return opened.enter_context(artifacts.local_path(artifact.key, artifact.sha256))

    found = sorted(files, key=lambda artifact: artifact.position)
    model, *members = [a for a in found if a.role == "model"]
    companions = [a for a in found if a.role == "model_data"]
    return OnnxModelFiles(
        path=local(model),
        companions={a.label: local(a) for a in companions},
        sha256=model.sha256,
        companion_sha256={a.label: a.sha256 for a in companions},
        members=tuple(OnnxMember(local(a), a.sha256) for a in members),
        tenant=tenant,
    )
