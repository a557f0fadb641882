{{- /*
What a process is told. `needs` has words for what it takes beside Kafka: redis, sign, store, sql,
feeds, dashboard, client (of SQL), operator, copies (of stores, which it hands out to nobody). It is one list for the environment and for the files, so that neither can lack what
the other has.
*/ -}}
{{- define "leasehold.files" -}}
{{- $v := .root.Values -}}
{{- $user := index $v.kafka.users .user -}}
{{- $needs := .needs -}}
{{- if hasPrefix "SASL_" $v.kafka.security }}
- {variable: LEASEHOLD_KAFKA_PASSWORD_FILE, secret: {{ required "kafka.passwordsSecret: kafka.security asks for passwords" $v.kafka.passwordsSecret | quote }}, key: {{ $user | quote }}, path: kafka-password}
{{- end }}
{{- with $v.kafka.caSecret }}
- {variable: LEASEHOLD_KAFKA_CA, secret: {{ . | quote }}, key: ca.crt, path: kafka-ca.crt}
{{- end }}
{{- with $v.kafka.tlsSecret }}
- {variable: LEASEHOLD_KAFKA_CERTIFICATE, secret: {{ . | quote }}, key: tls.crt, path: kafka-tls.crt}
- {variable: LEASEHOLD_KAFKA_KEY, secret: {{ . | quote }}, key: tls.key, path: kafka-tls.key}
{{- end }}
{{- if has "redis" $needs }}
{{- with $v.redis.passwordsSecret }}
- {variable: LEASEHOLD_REDIS_PASSWORD_FILE, secret: {{ . | quote }}, key: {{ $user | quote }}, path: redis-password}
{{- end }}
{{- with $v.redis.sentinelPasswordSecret }}
- {variable: LEASEHOLD_REDIS_SENTINEL_PASSWORD_FILE, secret: {{ . | quote }}, key: password, path: sentinel-password}
{{- end }}
{{- with $v.redis.caSecret }}
- {variable: LEASEHOLD_REDIS_CA, secret: {{ . | quote }}, key: ca.crt, path: redis-ca.crt}
{{- end }}
{{- end }}
{{- if has "sign" $needs }}
{{- with $v.requestKeySecret }}
- {variable: LEASEHOLD_REQUEST_KEY_FILE, secret: {{ . | quote }}, key: request-key, path: request-key}
{{- end }}
{{- end }}
{{- if or (has "store" $needs) (has "copies" $needs) }}
- {variable: LEASEHOLD_SNAPSHOT_TOKEN_FILE, secret: {{ required "snapshots.tokenSecret: nodes hand their stores to who knows it" $v.snapshots.tokenSecret | quote }}, key: token, path: snapshot-token}
{{- with $v.snapshots.tlsSecret }}
{{- if has "store" $needs }}
- {variable: LEASEHOLD_SNAPSHOT_TLS_CERT, secret: {{ . | quote }}, key: tls.crt, path: snapshot-tls.crt}
- {variable: LEASEHOLD_SNAPSHOT_TLS_KEY, secret: {{ . | quote }}, key: tls.key, path: snapshot-tls.key}
{{- end }}
- {variable: LEASEHOLD_SNAPSHOT_TLS_CA, secret: {{ . | quote }}, key: ca.crt, path: snapshot-ca.crt}
{{- end }}
{{- end }}
{{- with .key }}
# Its path is told by the command line.
- {variable: "", secret: {{ . | quote }}, key: backup-key, path: backup-key}
{{- end }}
{{- if and (has "sql" $needs) $v.sql.usersSecret }}
- {variable: LEASEHOLD_SQL_USERS_FILE, secret: {{ $v.sql.usersSecret | quote }}, key: users, path: sql-users}
{{- with $v.sql.tlsSecret }}
- {variable: LEASEHOLD_SQL_TLS_CERT, secret: {{ . | quote }}, key: tls.crt, path: sql-tls.crt}
- {variable: LEASEHOLD_SQL_TLS_KEY, secret: {{ . | quote }}, key: tls.key, path: sql-tls.key}
{{- end }}
{{- with $v.sql.clientCaSecret }}
- {variable: LEASEHOLD_SQL_TLS_CLIENT_CA, secret: {{ . | quote }}, key: ca.crt, path: sql-client-ca.crt}
{{- end }}
{{- end }}
{{- if and (has "feeds" $needs) $v.registry.url }}
{{- with $v.registry.passwordSecret }}
- {variable: LEASEHOLD_REGISTRY_PASSWORD_FILE, secret: {{ . | quote }}, key: password, path: registry-password}
{{- end }}
{{- with $v.registry.caSecret }}
- {variable: LEASEHOLD_REGISTRY_CA, secret: {{ . | quote }}, key: ca.crt, path: registry-ca.crt}
{{- end }}
{{- end }}
{{- if has "dashboard" $needs }}
{{- with $v.dashboard.tlsSecret }}
- {variable: LEASEHOLD_DASHBOARD_TLS_CERT, secret: {{ . | quote }}, key: tls.crt, path: dashboard-tls.crt}
- {variable: LEASEHOLD_DASHBOARD_TLS_KEY, secret: {{ . | quote }}, key: tls.key, path: dashboard-tls.key}
{{- end }}
{{- end }}
{{- if and (has "client" $needs) $v.sql.usersSecret }}
{{- with $v.sql.tlsSecret }}
- {variable: LEASEHOLD_SQL_TLS_CA, secret: {{ . | quote }}, key: ca.crt, path: sql-ca.crt}
{{- end }}
{{- if has "operator" $needs }}
{{- with $v.operator.sqlPasswordSecret }}
- {variable: LEASEHOLD_SQL_PASSWORD_FILE, secret: {{ . | quote }}, key: password, path: sql-password}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "leasehold.environment" -}}
{{- $v := .root.Values -}}
{{- $user := index $v.kafka.users .user -}}
{{- $needs := .needs -}}
- name: LEASEHOLD_NODE
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- {name: LEASEHOLD_DATABASE, value: {{ $v.database | quote }}}
- {name: LEASEHOLD_KAFKA, value: {{ required "kafka.bootstrap: brokers, host:port with commas" $v.kafka.bootstrap | quote }}}
- {name: LEASEHOLD_KAFKA_SECURITY, value: {{ $v.kafka.security | quote }}}
{{- if hasPrefix "SASL_" $v.kafka.security }}
- {name: LEASEHOLD_KAFKA_SASL_MECHANISM, value: {{ $v.kafka.saslMechanism | quote }}}
- {name: LEASEHOLD_KAFKA_USERNAME, value: {{ $user | quote }}}
{{- end }}
- {name: LEASEHOLD_REPLICATION_FACTOR, value: {{ $v.kafka.replicationFactor | quote }}}
{{- if has "redis" $needs }}
{{- $url := required "redis.url: redis://host:port/number" $v.redis.url }}
{{- if $v.redis.passwordsSecret }}
{{- $url = regexReplaceAll "://" $url (printf "://%s@" $user) }}
{{- end }}
- {name: LEASEHOLD_REDIS, value: {{ $url | quote }}}
{{- with $v.redis.sentinelUser }}
- {name: LEASEHOLD_REDIS_SENTINEL_USERNAME, value: {{ . | quote }}}
{{- end }}
{{- end }}
- {name: LEASEHOLD_DATA, value: /var/lib/leasehold}
- {name: LEASEHOLD_LISTEN, value: 0.0.0.0}
- {name: LEASEHOLD_ADVERTISE, value: {{ .advertise | quote }}}
{{- if .serves }}
- {name: LEASEHOLD_METRICS_LISTEN, value: 0.0.0.0}
- {name: LEASEHOLD_METRICS_PORT, value: {{ $v.observability.port | quote }}}
{{- end }}
- {name: LEASEHOLD_LOG_FORMAT, value: {{ $v.observability.logFormat | quote }}}
- {name: LEASEHOLD_LOG_LEVEL, value: {{ $v.observability.logLevel | quote }}}
{{- with $v.observability.traces.endpoint }}
- {name: LEASEHOLD_TRACES_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- with $v.observability.traces.sample }}
- {name: LEASEHOLD_TRACES_SAMPLE, value: {{ . | quote }}}
{{- end }}
{{- if has "store" $needs }}
- {name: LEASEHOLD_SNAPSHOT_PORT, value: {{ $v.snapshots.port | quote }}}
{{- if not $v.snapshots.tlsSecret }}
- {name: LEASEHOLD_SNAPSHOT_TLS, value: {{ include "leasehold.off" (dict "root" .root "name" "snapshots.tlsSecret") }}}
{{- end }}
{{- end }}
{{- if and (has "sql" $needs) $v.sql.usersSecret }}
- {name: LEASEHOLD_SQL_HOST, value: 0.0.0.0}
- {name: LEASEHOLD_SQL_PORT, value: {{ $v.sql.port | quote }}}
- {name: LEASEHOLD_SQL_AUTH, value: {{ $v.sql.auth | quote }}}
{{- if not $v.sql.tlsSecret }}
- {name: LEASEHOLD_SQL_TLS, value: {{ include "leasehold.off" (dict "root" .root "name" "sql.tlsSecret") }}}
{{- end }}
{{- end }}
{{- if and (has "feeds" $needs) $v.registry.url }}
- {name: LEASEHOLD_REGISTRY, value: {{ $v.registry.url | quote }}}
{{- with $v.registry.username }}
- {name: LEASEHOLD_REGISTRY_USERNAME, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- if has "dashboard" $needs }}
- {name: LEASEHOLD_DASHBOARD_PORT, value: {{ $v.dashboard.port | quote }}}
- {name: LEASEHOLD_DASHBOARD_HOSTS, value: {{ prepend $v.dashboard.hosts .advertise | join "," | quote }}}
- {name: LEASEHOLD_DASHBOARD_LOGIN, value: {{ ternary "on" "off" (not (empty $v.sql.usersSecret)) | quote }}}
{{- if not $v.dashboard.tlsSecret }}
- {name: LEASEHOLD_DASHBOARD_TLS, value: {{ include "leasehold.off" (dict "root" .root "name" "dashboard.tlsSecret") }}}
{{- end }}
{{- end }}
{{- if and (has "client" $needs) $v.sql.usersSecret }}
- {name: LEASEHOLD_SQL_HOST, value: {{ printf "%s-sql.%s.svc" (include "leasehold.fullname" .root) .root.Release.Namespace | quote }}}
- {name: LEASEHOLD_SQL_PORT, value: {{ $v.sql.port | quote }}}
{{- if has "operator" $needs }}
- {name: LEASEHOLD_SQL_USER, value: {{ $v.operator.sqlUser | quote }}}
{{- end }}
{{- if not $v.sql.tlsSecret }}
- {name: LEASEHOLD_SQL_TLS, value: {{ include "leasehold.off" (dict "root" .root "name" "sql.tlsSecret") }}}
{{- end }}
{{- end }}
{{- range (include "leasehold.files" . | fromYamlArray) }}
{{- if .variable }}
- {name: {{ .variable }}, value: /run/secrets/leasehold/{{ .path }}}
{{- end }}
{{- end }}
{{- range .more }}
- {name: {{ .name }}, value: {{ .value | quote }}}
{{- end }}
{{- range $name, $value := merge (dict) (.settings | default dict) $v.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- /* off, where the values allow that. */ -}}
{{- define "leasehold.off" -}}
{{- if not .root.Values.allowPlaintext -}}
{{- fail (printf "%s: name a Secret with tls.crt and tls.key, or set allowPlaintext: true for a trial" .name) -}}
{{- end -}}
"off"
{{- end }}
