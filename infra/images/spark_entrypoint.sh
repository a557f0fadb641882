#!/bin/sh
# Of Spark's image: an executor where Kubernetes asks for one (as Spark's own images understand it),
# else the command that is given.
set -eu
if [ "${1:-}" != executor ]; then
  exec "$@"
fi
home=$(python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
# Options of the JVM, one a variable: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …
set --
number=0
while option=$(printenv "SPARK_JAVA_OPT_$number"); do
  set -- "$@" "$option"
  number=$((number + 1))
done
exec java "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CONF_DIR:-}:$home/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" \
  --executor-id "$SPARK_EXECUTOR_ID" \
  --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" \
  --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
  --podName "$SPARK_EXECUTOR_POD_NAME"
