# The Spark driver: Python, a Java runtime, and the four Kafka jars of infra/spark/pom.xml. Build
# from the repository's root: docker build -f infra/images/spark.Dockerfile .
FROM maven:3.9-eclipse-temurin-17@sha256:42a3ac393abbc64dae6c96703e5ead2e921fe9103371ac58b5b404b0d6a26502 AS jars
COPY infra/spark/pom.xml infra/spark/jars.sha256 /build/
RUN mvn --batch-mode --quiet --strict-checksums --file /build/pom.xml \
      dependency:copy-dependencies -DoutputDirectory=/jars \
    && cd /jars && sha256sum --check --quiet --strict /build/jars.sha256

FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/leasehold
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY --from=jars /jars /opt/leasehold/.leasehold/jars/spark
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
    && useradd --system --create-home --uid 10001 --gid leasehold leasehold \
    && install --directory --owner=leasehold --group=leasehold /var/lib/leasehold
ENV LEASEHOLD_SPARK_JARS=/opt/leasehold/.leasehold/jars/spark
ENV LEASEHOLD_METRICS_PORT=9461 PYTHONDONTWRITEBYTECODE=1
USER leasehold
VOLUME /var/lib/leasehold
HEALTHCHECK --interval=5s --timeout=10s --start-period=60s --retries=12 \
  CMD ["python", "-I", "-S", "/opt/leasehold/infra/ask_ready.py"]
ENTRYPOINT ["/opt/leasehold/infra/images/spark_entrypoint.sh"]
