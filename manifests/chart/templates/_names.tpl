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

{{- /* goMemoryLimit as the Go runtime reads it: an amount, or nothing. */ -}}
{{- define "paddock.goMemoryLimit" -}}
{{- $limit := .Values.goMemoryLimit -}}
{{- if hasSuffix "%" $limit -}}
{{- with ((.Values.resources | default (dict)).limits | default (dict)).memory -}}
{{- $memory := . -}}
{{- if not (kindIs "string" .) -}}{{- $memory = int64 . | toString -}}{{- end -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?$" $memory) -}}
{{- fail (printf "goMemoryLimit is %s of resources.limits.memory, which is %s: write that as a number with one of k, M, G, T, Ki, Mi, Gi, Ti or nothing after it, or goMemoryLimit as an amount" $limit $memory) -}}
{{- end -}}
{{- $unit := regexFind "[A-Za-z]*$" $memory -}}
{{- $factor := get (dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776) $unit -}}
{{- $bytes := mulf (trimSuffix $unit $memory | float64) $factor -}}
{{- divf (mulf $bytes (trimSuffix "%" $limit | float64)) 104857600 | floor | int64 }}MiB
{{- end -}}
{{- else -}}
{{ $limit }}
{{- end -}}
{{- end -}}

{{- /* Refuses policies that the API server does not know. "helm template" asks none, and
then there are no kinds among the versions. */ -}}
{{- define "paddock.served" -}}
{{- $versions := .Capabilities.APIVersions -}}
{{- range $name := list "setSchedulerName" "setUser" -}}
{{- with get $.Values.admission $name -}}
{{- if and ($versions.Has "v1/Pod") (not ($versions.Has (printf "admissionregistration.k8s.io/%s/MutatingAdmissionPolicy" .))) -}}
{{- $why := "that is for Kubernetes 1.36; on 1.35 it is v1beta1, with the feature gate that docs/install.md names" -}}
{{- if eq . "v1beta1" -}}
{{- $why = "on 1.35 it does with --feature-gates=MutatingAdmissionPolicy=true and --runtime-config=admissionregistration.k8s.io/v1beta1=true; elsewhere leave it empty" -}}
{{- end -}}
{{- fail (printf "admission.%s is %s, and the API server does not serve MutatingAdmissionPolicy of that version: %s" $name . $why) -}}
{{- end -}}
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

{{- /* Values that are arguments of the same name, by plugin, where they are not the default
of the argument. */ -}}
{{- define "paddock.changed" -}}
{{- $defaults := dict
  "QueueSort" (dict "daemonSetOwner" "Verified" "maxDynamicQueues" 1000 "maxDynamicQueuesPerNamespace" 100)
  "NodeReservation" (dict "daemonSetNamespaces" (list) "holdTaint" "Auto" "maxVictimGrace" "") -}}
{{- range $plugin, $arguments := $defaults -}}
{{- range $name, $default := $arguments -}}
{{- if or (not (hasKey $.Values $name)) (eq (get $.Values $name | toString) (toString $default)) -}}
{{- $_ := unset $arguments $name -}}
{{- else -}}
{{- $_ := set $arguments $name (get $.Values $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toYaml $defaults }}
{{- end -}}

{{- /* Arguments of plugins that are the same in all profiles. */ -}}
{{- define "paddock.arguments" -}}
{{- $changed := include "paddock.changed" . | fromYaml -}}
- name: QueueSort
  args:
    managedProfiles: [yunikorn]
    restAddress: 0.0.0.0:{{ .Values.service.port }}
    {{- if .Values.rest.tlsSecret }}
    restTLSCertFile: /etc/paddock-rest/tls.crt
    restTLSKeyFile: /etc/paddock-rest/tls.key
    {{- end }}
    {{- with include "paddock.hosts" . }}
    restHosts: [{{ . }}]
    {{- end }}
    {{- if ne .Values.rest.authorization "None" }}
    restAuthorization: {{ .Values.rest.authorization }}
    {{- end }}
    {{- with $changed.QueueSort }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- with $changed.NodeReservation }}
- name: NodeReservation
  args:
    {{- toYaml . | nindent 4 }}
{{- end }}
{{- end -}}

{{- /* The names of REST beside those that the scheduler knows itself. */ -}}
{{- define "paddock.hosts" -}}
{{- $hosts := .Values.rest.hosts -}}
{{- if ne .Values.service.name "yunikorn-service" -}}
{{- $hosts = prepend $hosts .Values.service.name | uniq -}}
{{- end -}}
{{ join ", " $hosts }}
{{- end -}}

{{- /* Refuses a schedulerConfig that lacks what the values ask of the configuration. It is
read as YAML and written again, so that each key has a line, and comments none. */ -}}
{{- define "paddock.complete" -}}
{{- $own := tpl .Values.schedulerConfig . | fromYaml -}}
{{- with $own.Error -}}{{- fail (printf "schedulerConfig is not YAML: %s" .) -}}{{- end -}}
{{- $own = toYaml $own -}}
{{- range $plugin, $arguments := include "paddock.changed" . | fromYaml -}}
{{- range $name, $value := $arguments -}}
{{- if not (regexMatch (printf "(?m)^\\s*(- )?%s:" $name) $own) -}}
{{- fail (printf "%s is set, and schedulerConfig does not have it: set it there, too, in the arguments of %s" $name $plugin) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $lacks := "%s, and schedulerConfig does not have it: set %s, too, in %s" -}}
{{- $arguments := "the arguments of QueueSort" -}}
{{- if and (ne .Values.rest.authorization "None") (not (regexMatch (printf "(?m)^\\s*(- )?restAuthorization: %s$" .Values.rest.authorization) $own)) -}}
{{- fail (printf $lacks (printf "rest.authorization is %s" .Values.rest.authorization) (printf "restAuthorization: %s" .Values.rest.authorization) $arguments) -}}
{{- end -}}
{{- if and .Values.rest.tlsSecret (not (regexMatch "(?m)^\\s*(- )?restTLSCertFile:" $own)) -}}
{{- fail (printf $lacks (printf "rest.tlsSecret is %s" .Values.rest.tlsSecret) "restTLSCertFile: /etc/paddock-rest/tls.crt and restTLSKeyFile: /etc/paddock-rest/tls.key" $arguments) -}}
{{- end -}}
{{- $hosts := include "paddock.hosts" . -}}
{{- if and $hosts (not (regexMatch "(?m)^\\s*(- )?restHosts:" $own)) -}}
{{- fail (printf $lacks "rest.hosts or service.name has a name for REST" (printf "restHosts: [%s]" $hosts) $arguments) -}}
{{- end -}}
{{- if and .Values.podGroups.enabled (not (regexMatch "(?m)^\\s*(- )?name: Coscheduling$" $own)) -}}
{{- fail (printf $lacks "podGroups.enabled is true" "Coscheduling" "the plugins of the profile, as in manifests/config/with-podgroups.yaml") -}}
{{- end -}}
{{- end -}}

{{- /* The configuration of the scheduler. */ -}}
{{- define "paddock.config" -}}
{{- if .Values.schedulerConfig -}}
{{- include "paddock.complete" . -}}
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
