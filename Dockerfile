# CPU and CUDA image of the service. Build: docker build -t howsure .
# CUDA: docker build --build-arg EXTRAS=cuda,tables -t howsure:cuda .
FROM python:3.12-slim AS build
ARG EXTRAS=tables
WORKDIR /src
COPY pyproject.toml requirements.lock README.md LICENSE ./
COPY service service
COPY models models
COPY migrations migrations
COPY examples/digits examples/digits
RUN python -m venv /opt/howsure \
 && grep -vE '^ +--hash|^#' requirements.lock | sed 's/ *\\$//' > /tmp/constraints.txt \
 && /opt/howsure/bin/pip install --no-cache-dir -c /tmp/constraints.txt ".[${EXTRAS}]"

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home howsure \
 && install -d -o howsure -g howsure /data
COPY --from=build /opt/howsure /opt/howsure
USER howsure
WORKDIR /data
ENV PATH=/opt/howsure/bin:$PATH HOWSURE_HOST=0.0.0.0 HOWSURE_DATA_DIR=/data HOWSURE_LOG_FORMAT=json
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
CMD ["howsure", "serve"]
