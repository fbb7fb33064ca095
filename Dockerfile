# One image for the service, a worker or a Dask worker; the command selects one.
#   docker build --target cpu -t howsure:cpu .      for CPUs (the last target, so the default)
#   docker build --target cuda -t howsure:cuda .    for CPUs and NVIDIA GPUs: `docker run --gpus all`
#
# Both use a plain Python image as base. On x86-64 the package depends on onnxruntime-gpu, which also
# runs on CPUs. A GPU also needs CUDA 13 and cuDNN 9. These come from the wheels in onnxruntime-gpu's own
# extra: the versions it was built for, pinned in the lock file, without the compilers and collectives of
# NVIDIA's images. The host provides the driver.

FROM python:3.12.12-slim-bookworm AS base

FROM base AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1 VIRTUAL_ENV=/opt/howsure
RUN pip install --no-cache-dir uv==0.13.9 \
 && uv venv /opt/howsure
WORKDIR /src
COPY pyproject.toml requirements.lock requirements-cuda.lock README.md LICENSE ./
COPY howsure howsure
COPY service service
COPY models models
COPY migrations migrations
COPY examples/digits examples/digits

# uv checks the hashes of the lock files, even when they are used as constraints.
FROM build AS build-cpu
RUN uv pip install --constraints requirements.lock ".[tables,cluster]"

FROM build AS build-cuda
RUN uv pip install --constraints requirements-cuda.lock ".[cuda,tables,cluster]"

FROM base AS run
# Numeric, because Kubernetes cannot check whether a user name is root.
RUN groupadd --system --gid 10001 howsure \
 && useradd --system --uid 10001 --gid 10001 --no-create-home howsure \
 && install -d -o 10001 -g 10001 /data
COPY --chmod=0755 docker/healthcheck.py /usr/local/share/howsure/healthcheck.py
# Others can reach a container. So it starts only with an API key in its database, or with
# HOWSURE_ALLOW_ANONYMOUS=1 if its port is published to this machine only: docs/keys.md.
ENV PATH=/opt/howsure/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HOME=/data \
    HOWSURE_HOST=0.0.0.0 \
    HOWSURE_DATA_DIR=/data \
    HOWSURE_LOG_FORMAT=json
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000 8001
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --start-interval=2s \
  CMD ["python", "/usr/local/share/howsure/healthcheck.py"]
STOPSIGNAL SIGTERM
CMD ["howsure", "serve"]

FROM run AS cuda
# Settings for NVIDIA's container toolkit.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build-cuda /opt/howsure /opt/howsure

FROM run AS cpu
COPY --from=build-cpu /opt/howsure /opt/howsure
