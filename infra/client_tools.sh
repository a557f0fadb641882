#!/usr/bin/env bash
# Installs the migration tools, ORMs and clients that tests/integration/tools runs beside those of the
# environment, from npm, PyPI, the Go proxy and Maven, into .leasehold/client-tools. What can't be had
# is said, and its tests are skipped.
set -uo pipefail
cd -P "$(dirname "$0")/.."

folder=$PWD/.leasehold/client-tools
mkdir -p "$folder/bin" "$folder/jars"

miss() { echo "client-tools: $1 is not there: its tests will be skipped" >&2; }

if command -v npm > /dev/null; then
  npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$folder" \
    knex@3.3.0 pg@8.23.1 pg-hstore@2.3.4 typeorm@1.1.1 sequelize@6.37.8 drizzle-orm@0.45.4 \
    drizzle-kit@0.31.11 prisma@6.19.3 @prisma/client@6.19.3 @prisma/adapter-pg@6.19.3 \
    || miss "a package of npm's"
else
  miss "npm"
fi

if command -v go > /dev/null; then
  GOBIN=$folder/bin go install github.com/pressly/goose/v3/cmd/goose@v3.24.1 || miss "goose"
  GOBIN=$folder/bin go install -tags postgres \
    github.com/golang-migrate/migrate/v4/cmd/migrate@v4.18.1 || miss "golang-migrate"
else
  miss "go"
fi

# In an environment of their own: what they need is not what Leasehold needs.
python3.11 -m venv "$folder/python" && "$folder/python/bin/pip" install --quiet --no-input \
  --disable-pip-version-check optuna==5.0.0 'psycopg[binary]==3.3.9' tortoise-orm[asyncpg]==1.1.9 \
  pgcli==4.7.1 || miss "a package of PyPI's"
# dbt's own packages want other versions of what the others need; those behind 1.11 fetch a program.
python3.11 -m venv "$folder/dbt" && "$folder/dbt/bin/pip" install --quiet --no-input \
  --disable-pip-version-check dbt-core==1.11.16 dbt-postgres==1.10.2 || miss "dbt"

if command -v mvn > /dev/null; then
  # What brings other jars along, each with all of its own.
  mvn --quiet --batch-mode --file infra/client_tools/pom.xml dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$folder/java" || miss "Hibernate, jOOQ"
  for jar in org.postgresql:postgresql:42.7.4 org.liquibase:liquibase-core:4.29.2 \
    org.flywaydb:flyway-core:10.20.1 org.flywaydb:flyway-database-postgresql:10.20.1; do
    mvn --quiet --batch-mode dependency:copy -Dartifact="$jar" -DoutputDirectory="$folder/jars" \
      || miss "$jar"
  done
  # What Liquibase and Flyway themselves need.
  for jar in com.opencsv:opencsv:5.9 org.yaml:snakeyaml:2.2 javax.xml.bind:jaxb-api:2.3.1 \
    org.apache.commons:commons-collections4:4.4 org.apache.commons:commons-text:1.12.0 \
    org.apache.commons:commons-lang3:3.15.0 commons-io:commons-io:2.16.1 \
    com.fasterxml.jackson.core:jackson-databind:2.17.2 \
    com.fasterxml.jackson.core:jackson-core:2.17.2 \
    com.fasterxml.jackson.core:jackson-annotations:2.17.2 \
    com.fasterxml.jackson.dataformat:jackson-dataformat-toml:2.17.2 \
    com.google.code.gson:gson:2.11.0; do
    mvn --quiet --batch-mode dependency:copy -Dartifact="$jar" -DoutputDirectory="$folder/jars" \
      || miss "$jar"
  done
else
  miss "mvn"
fi
