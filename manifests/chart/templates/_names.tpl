{{- /* The labels by which pods are found. */ -}}
{{- define "paddock.selector" -}}
app.kubernetes.io/name: paddock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "paddock.labels" -}}
{{ include "paddock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "paddock.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The affinity of the values, and beside it that of requireSpread: no replica, of
whatever revision, on a node that has one. */ -}}
{{- define "paddock.affinity" -}}
{{- $affinity := deepCopy .Values.affinity -}}
{{- if .Values.requireSpread -}}
{{- $apart := $affinity.podAntiAffinity | default (dict) -}}
{{- $required := $apart.requiredDuringSchedulingIgnoredDuringExecution | default (list) -}}
{{- $labels := include "paddock.selector" . | fromYaml -}}
{{- $replicas := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $_ := set $apart "requiredDuringSchedulingIgnoredDuringExecution" (append $required $replicas) -}}
{{- $_ := set $affinity "podAntiAffinity" $apart -}}
{{- end -}}
{{ toYaml $affinity }}
{{- end -}}

{{- /* The configuration of the scheduler. */ -}}
{{- define "paddock.config" -}}
{{- if .Values.schedulerConfig -}}
{{ tpl .Values.schedulerConfig . }}
{{- else -}}
{{ tpl (.Files.Get "files/scheduler.yaml") . }}
{{- end -}}
{{- end -}}

{{- define "paddock.subject" -}}
- kind: ServiceAccount
  name: paddock-scheduler
  namespace: {{ .Release.Namespace }}
{{- end -}}
