# One image for the service, a worker or a Dask worker; the command selects one.
#   docker build --target cpu -t howsure:cpu .      for CPUs; also without a target
#   docker build --target cuda -t howsure:cuda .    for CPUs and NVIDIA GPUs: `docker run --gpus all`
#
# Docker builds it from 20.10 on, Podman from 4 on, with and without BuildKit. Builders without BuildKit
# build every stage above the target, so the CPU image comes first.
#
# Both use a plain Python image as base. The CPU image has onnxruntime. The other has onnxruntime-gpu, which
# also needs CUDA 13 and cuDNN 9. These come from the wheels in its own extra: the versions it was built for,
# without the compilers and collectives of NVIDIA's images. The host provides the driver.

FROM python:3.12.12-slim-bookworm AS base

FROM base AS build
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1 VIRTUAL_ENV=/opt/howsure
RUN pip install --no-cache-dir uv==0.13.9 \
 && uv venv /opt/howsure
WORKDIR /src

FROM build AS wheel
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY howsure howsure
COPY service service
COPY models models
COPY migrations migrations
COPY examples/digits examples/digits
RUN uv build --wheel --build-constraints requirements.lock --out-dir /wheels

# The list of what is installed (SBOM) is /opt/howsure/share/howsure/howsure.cdx.json, in CycloneDX format.
FROM build AS build-cpu
COPY requirements-cpu.lock requirements-outside.lock ./
RUN uv pip install --require-hashes --requirements requirements-cpu.lock \
 && find /opt/howsure/lib -type d -name tests -not -path "*/numpy/*" -prune -exec rm -rf {} + \
 && rm -rf /opt/howsure/lib/python*/site-packages/onnx/backend/test /opt/howsure/lib/python*/site-packages/pyarrow/include
COPY --from=wheel /wheels /wheels
RUN uv pip install --no-deps /wheels/*.whl \
 && mkdir -p /opt/howsure/share/howsure \
 && uv tool run --constraints requirements-outside.lock --from cyclonedx-bom cyclonedx-py environment /opt/howsure \
    --output-reproducible --output-file /opt/howsure/share/howsure/howsure.cdx.json

FROM base AS run
ARG REVISION=
LABEL org.opencontainers.image.title="Howsure" \
      org.opencontainers.image.description="Calibrated probabilities with confidence intervals for ONNX classifiers" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="docker.io/library/python:3.12.12-slim-bookworm"
COPY docker/healthcheck.py /usr/local/share/howsure/healthcheck.py
# User and group are numeric, because Kubernetes cannot check whether a user name is root.
RUN chmod 0644 /usr/local/share/howsure/healthcheck.py \
 && groupadd --system --gid 10001 howsure \
 && useradd --system --uid 10001 --gid 10001 --no-create-home howsure \
 && install -d -o 10001 -g 10001 /data
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
HEALTHCHECK --interval=5s --timeout=10s --start-period=60s \
  CMD ["python", "/usr/local/share/howsure/healthcheck.py"]
STOPSIGNAL SIGTERM
CMD ["howsure", "serve"]

FROM run AS cpu
COPY --from=build-cpu /opt/howsure /opt/howsure

FROM build AS build-cuda
COPY requirements-cuda.lock requirements-outside.lock ./
RUN uv pip install --require-hashes --requirements requirements-cuda.lock
COPY --from=wheel /wheels /wheels
RUN uv pip install --no-deps /wheels/*.whl \
 && mkdir -p /opt/howsure/share/howsure \
 && uv tool run --constraints requirements-outside.lock --from cyclonedx-bom cyclonedx-py environment /opt/howsure \
    --output-reproducible --output-file /opt/howsure/share/howsure/howsure.cdx.json

FROM run AS cuda
# Settings for NVIDIA's container toolkit.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build-cuda /opt/howsure /opt/howsure

FROM cpu
