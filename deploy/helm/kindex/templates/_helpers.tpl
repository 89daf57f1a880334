{{- /* Names, labels, and what several templates share. */}}

{{- define "kindex.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- /* Of (root, component): what pods are selected by; never changes in the life of a release. */}}
{{- define "kindex.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /* Of (root, component). */}}
{{- define "kindex.labels" -}}
{{- $root := index . 0 -}}
{{ include "kindex.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The names of the services that are enabled, as JSON: a block of the values that says what to run is a service. */}}
{{- define "kindex.services" -}}
{{- $names := list -}}
{{- range $name, $block := .Values -}}
{{- if kindIs "map" $block -}}
{{- if and $block.run $block.enabled -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{- define "kindex.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* "true" where both conditions of docs/src/reference/configuration.md hold. */}}
{{- define "kindex.ingesterMayRun" -}}
{{- $storage := default dict .Values.config.metadataStorage -}}
{{- if and $storage.enableMetadataStorage .Values.database.enabled .Values.config.mysql -}}
true
{{- end -}}
{{- end }}

{{- /* The configuration file: the values' stanzas, and where the credentials are. */}}
{{- define "kindex.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if not .Values.database.enabled -}}
{{- $config = omit $config "mysql" -}}
{{- else if $config.mysql -}}
{{- if not $config.mysql.user -}}
{{- $_ := set $config.mysql "userFile" "/etc/kindex/mysql/user" -}}
{{- end -}}
{{- $_ := set $config.mysql "passwordFile" "/etc/kindex/mysql/password" -}}
{{- with .Values.database.tls -}}
{{- $_ := set $config.mysql "tlsMode" .mode -}}
{{- if .caSecret -}}
{{- $_ := set $config.mysql "tlsCaFile" "/etc/kindex/mysql/ca.crt" -}}
{{- end -}}
{{- if .clientSecret -}}
{{- $_ := set $config.mysql "tlsCertFile" "/etc/kindex/mysql/tls.crt" -}}
{{- $_ := set $config.mysql "tlsKeyFile" "/etc/kindex/mysql/tls.key" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{- /* Where clients reach runs over REST. */}}
{{- define "kindex.runsUrl" -}}
{{- with .Values.runs -}}
{{- $scheme := ternary "https" "http" (ne .tls.secretName "") -}}
{{- $host := printf "%s-runs.%s.svc" (include "kindex.fullname" $) $.Release.Namespace -}}
{{- default (printf "%s://%s:%d" $scheme $host (int .service.restPort)) .options.publicUrl -}}
{{- end -}}
{{- end }}

{{- define "kindex.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "kindex.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* The volume of the credentials; "" where there is no database. */}}
{{- define "kindex.credentials" -}}
- name: mysql
  projected:
    {{- /* 0440, which YAML 1.2 reads as another number. */}}
    defaultMode: 288
    sources:
      - secret:
          name: {{ .Values.database.existingSecret }}
          items:
            {{- if not .Values.config.mysql.user }}
            - key: {{ .Values.database.userKey }}
              path: user
            {{- end }}
            - key: {{ .Values.database.passwordKey }}
              path: password
      {{- with .Values.database.tls }}
      {{- if .caSecret }}
      - secret:
          name: {{ .caSecret }}
          items:
            - key: {{ .caKey }}
              path: ca.crt
      {{- end }}
      {{- if .clientSecret }}
      - secret:
          name: {{ .clientSecret }}
          items:
            - key: tls.crt
              path: tls.crt
            - key: tls.key
              path: tls.key
      {{- end }}
      {{- end }}
{{- end }}

{{- /* Where a container has the credentials. */}}
{{- define "kindex.credentialsMount" -}}
- name: mysql
  mountPath: /etc/kindex/mysql
  readOnly: true
{{- end }}

{{- /* The way to the database; "" where there is none. */}}
{{- define "kindex.egressToDatabase" -}}
{{- with .Values.config.mysql }}
- ports:
    - port: {{ .port | default 3306 }}
  {{- with $.Values.networkPolicy.databaseTo }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "kindex.environment" -}}
- name: KINDEX_LOG
  value: {{ .Values.log.filter | quote }}
- name: KINDEX_LOG_FORMAT
  value: {{ .Values.log.format }}
{{- with .Values.tracing.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Of (root, values of a role): where its pods run. */}}
{{- define "kindex.placement" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
terminationGracePeriodSeconds: {{ .terminationGracePeriodSeconds }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Of (root, component): replicas on different nodes where that is possible. */}}
{{- define "kindex.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "kindex.selector" . | nindent 8 }}
{{- end }}
