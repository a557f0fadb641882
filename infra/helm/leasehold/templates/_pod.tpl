{{- /* A process as every container of the chart has it; see `leasehold.pod`. */ -}}
{{- define "leasehold.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "leasehold.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
# The store's files are the process's own: opened to the group they would be closed at each start.
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* What a command has found, and wrong options, are the same the next time. */ -}}
{{- define "leasehold.failAtOnce" -}}
rules:
  - action: FailJob
    onExitCodes: {containerName: {{ . }}, operator: In, values: [1, 2]}
    # None; releases up to 1.28 describe it as needed.
    onPodConditions: []
{{- end }}

{{- /* Not ready is nobody's reason to be started again; only a loop that hangs is. */ -}}
{{- define "leasehold.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end }}

{{- /*
The template of a pod with one process. root; component; process: its values; idle: it serves nothing and has no probes; user: its key in
kafka.users; needs, advertise, more: see `leasehold.environment`; key: the Secret of its key of backups; command; image; ports: beside that
of the metrics; claim: its data are those of a PersistentVolumeClaim template named data; room: else how
much they may take; restart: its restartPolicy; early: it runs before the release's other objects are there, so
as nobody in particular; drain: how many seconds it goes on serving after it is
told to stop; mounts, volumes: more of them.
*/ -}}
{{- define "leasehold.pod" -}}
{{- $v := .root.Values -}}
{{- $p := .process -}}
{{- $said := dict "root" .root "user" .user "needs" .needs "advertise" .advertise "more" .more "key" .key "settings" $p.settings "serves" (not .idle) -}}
{{- $files := include "leasehold.files" $said | fromYamlArray -}}
metadata:
  labels:
    {{- include "leasehold.labels" . | nindent 4 }}
  {{- with $p.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if not .early }}
  serviceAccountName: {{ .account | default (include "leasehold.fullname" .root) }}
  {{- end }}
  automountServiceAccountToken: {{ not (empty .account) }}
  enableServiceLinks: false
  # Another process is the first one then: SIGTERM is not lost while Python starts, and somebody
  # collects Spark's dead workers.
  shareProcessNamespace: true
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  terminationGracePeriodSeconds: {{ $p.terminationGracePeriodSeconds | default 30 }}
  securityContext:
    {{- include "leasehold.podSecurity" . | nindent 4 }}
  {{- with $v.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .container | default .component }}
      image: {{ include "leasehold.image" (dict "root" .root "image" (.image | default $v.image)) | quote }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      command:
        {{- toYaml .command | nindent 8 }}
      env:
        {{- include "leasehold.environment" $said | nindent 8 }}
      {{- with .from }}
      envFrom:
        - secretRef: {name: {{ . | quote }}}
      {{- end }}
      {{- if not .idle }}
      ports:
        - {name: metrics, containerPort: {{ $v.observability.port }}}
        {{- range .ports }}
        - {name: {{ .name }}, containerPort: {{ .port }}}
        {{- end }}
      {{- include "leasehold.probes" . | nindent 6 }}
      {{- end }}
      {{- with .drain }}
      # Until nobody sends new clients any more.
      lifecycle:
        preStop:
          exec: {command: [sleep, {{ . | quote }}]}
      {{- end }}
      resources:
        {{- toYaml $p.resources | nindent 8 }}
      securityContext:
        {{- include "leasehold.confined" . | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /var/lib/leasehold}
        - {name: tmp, mountPath: /tmp}
        {{- if $files }}
        - {name: secrets, mountPath: /run/secrets/leasehold, readOnly: true}
        {{- end }}
        {{- range .mounts }}
        - {{ toYaml . | nindent 10 | trim }}
        {{- end }}
  volumes:
    {{- if not .claim }}
    - name: data
      emptyDir: {sizeLimit: {{ .room | default "1Gi" }}}
    {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: 1Gi}
    {{- if $files }}
    - name: secrets
      projected:
        defaultMode: 0440
        sources:
          {{- range $files }}
          - secret:
              name: {{ .secret | quote }}
              items:
                - {key: {{ .key | quote }}, path: {{ .path }}}
          {{- end }}
    {{- end }}
    {{- range .volumes }}
    - {{ toYaml . | nindent 6 | trim }}
    {{- end }}
  {{- with $p.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $p.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $p.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $p.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- if gt (int ($p.replicas | default 1)) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "leasehold.selector" . | nindent 10 }}
  {{- end }}
{{- end }}

{{- define "leasehold.claims" -}}
volumeClaimTemplates:
  - metadata:
      name: data
    spec:
      accessModes: [ReadWriteOnce]
      {{- with .storage.className }}
      storageClassName: {{ . | quote }}
      {{- end }}
      resources:
        requests:
          storage: {{ .storage.size | quote }}
{{- end }}
