{{- define "leasehold.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "leasehold.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{- define "leasehold.labels" -}}
{{ include "leasehold.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: leasehold
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "leasehold.image" -}}
{{- $image := .image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- /* The ports of addresses: of brokers, or in a URL; each once. */ -}}
{{- define "leasehold.ports" -}}
{{- $ports := list -}}
{{- range regexFindAll ":[0-9]+" . -1 -}}
{{- $ports = append $ports (trimPrefix ":" .) -}}
{{- end -}}
{{- if and . (not $ports) -}}
{{- $ports = list (ternary "443" (ternary "80" "6379" (hasPrefix "http:" .)) (hasPrefix "https:" .)) -}}
{{- end -}}
{{- $ports | uniq | join "," -}}
{{- end }}
