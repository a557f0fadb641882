# Every service but the Spark driver. Build from the repository's root:
#   docker build -f infra/images/services.Dockerfile .
FROM python:3.11-slim-bookworm

WORKDIR /opt/leasehold
COPY requirements.lock ./
# pyspark and its JVM are the Spark image's; nothing else here needs them. A lock entry goes on to
# the first line without a backslash at its end.
RUN awk '/^(pyspark|py4j)==/ { skip = 1 } !skip { print } !/\\$/ { skip = 0 }' requirements.lock \
      > services.lock \
    && pip install --no-cache-dir --require-hashes --requirement services.lock
COPY pyproject.toml ./
COPY libs libs
COPY services services
COPY spark_streaming spark_streaming
COPY infra infra
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && useradd --system --uid 10001 leasehold \
    && install --directory --owner=leasehold /var/lib/leasehold
USER leasehold
VOLUME /var/lib/leasehold
