"""An artifact store around another one, for tests that watch it or interfere."""

from service.storage.artifact_store import ArtifactStore


class WrappedStore(ArtifactStore):
    """Hands everything on; a test overrides what it watches."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def put_file(self, key, path):
        return self._store.put_file(key, path)

    def put_buffers(self, key, buffers):
        return self._store.put_buffers(key, buffers)

    def get_bytes(self, key, sha256):
        return self._store.get_bytes(key, sha256)

    def local_path(self, key, sha256):
        return self._store.local_path(key, sha256)

    def unverified_path(self, key):
        return self._store.unverified_path(key)

    def delete(self, keys):
        self._store.delete(keys)

    def files(self, prefix="calibrations"):
        return self._store.files(prefix)

    def check(self):
        self._store.check()
