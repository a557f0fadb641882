# Every service but the Spark driver. Build from the repository's root:
#   docker build -f infra/images/services.Dockerfile .
FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b AS interpreted

WORKDIR /opt/leasehold
COPY requirements.lock ./
# pyspark and its JVM are the Spark image's; nothing else here needs them. A lock entry goes on to
# the first line without a backslash at its end.
RUN awk '/^(pyspark|py4j)==/ { skip = 1 } !skip { print } !/\\$/ { skip = 0 }' requirements.lock \
      > services.lock \
    && pip install --no-cache-dir --require-hashes --requirement services.lock
COPY pyproject.toml README.md LICENSE ./
COPY libs libs
COPY services services
COPY spark_streaming spark_streaming
COPY infra infra
# Compiled here: where the root is read-only nobody could keep it. A group and a user with numbers,
# which Kubernetes asks for.
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && python -m compileall -q libs services spark_streaming infra \
    && groupadd --system --gid 10001 leasehold \
    && useradd --system --uid 10001 --gid leasehold leasehold \
    && install --directory --owner=leasehold --group=leasehold /var/lib/leasehold

# The hot path by mypyc, as `make setup` has it (infra/DESIGN.md, *Compiled services*). The compiler
# stays behind.
FROM interpreted AS compiled
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
RUN LEASEHOLD_COMPILED=always python -m infra.compiled build \
    && rm -rf .leasehold/compiled/cache \
    && ln -s "$(LEASEHOLD_COMPILED=always python -m infra.compiled path)" .leasehold/compiled/now

FROM interpreted
COPY --from=compiled /opt/leasehold/.leasehold/compiled /opt/leasehold/.leasehold/compiled
ENV PYTHONPATH=/opt/leasehold/.leasehold/compiled/now
ENV LEASEHOLD_METRICS_PORT=9461 PYTHONDONTWRITEBYTECODE=1
USER leasehold
VOLUME /var/lib/leasehold
HEALTHCHECK --interval=5s --timeout=10s --start-period=60s --retries=12 \
  CMD ["python", "-I", "-S", "/opt/leasehold/infra/ask_ready.py"]
