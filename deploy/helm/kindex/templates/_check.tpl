{{- /* Rules that a schema of single values cannot express. All errors of a run are reported at once. */}}

{{- define "kindex.check" -}}
{{- $errors := list -}}
{{- range $name, $block := .Values -}}
{{- if and (kindIs "map" $block) (hasKey (default dict $block) "replicas") (not (hasKey (default dict $block) "run")) -}}
{{- $errors = append $errors (printf "%s.run is absent: these are the values of an older chart. Upgrade with --reset-then-reuse-values instead of --reuse-values" $name) -}}
{{- end -}}
{{- end -}}
{{- with .Values.config.mysql -}}
{{- if .password -}}
{{- $errors = append $errors "config.mysql.password: a ConfigMap must not contain a password. Put it into the Secret that database.existingSecret names, under database.passwordKey" -}}
{{- end -}}
{{- if or .userFile .passwordFile -}}
{{- $errors = append $errors "config.mysql.userFile and passwordFile are set by the chart. Name the Secret and its keys in database instead" -}}
{{- end -}}
{{- if or .tlsMode .tlsCaFile .tlsCertFile .tlsKeyFile -}}
{{- $errors = append $errors "config.mysql.tlsMode and its files are set by the chart. Use database.tls instead" -}}
{{- end -}}
{{- end -}}
{{- with .Values.database.tls -}}
{{- if and .caSecret (not (hasPrefix "verify-" .mode)) -}}
{{- $errors = append $errors (printf "database.tls.caSecret has no effect with mode %s. Set mode verify-ca or verify-identity" .mode) -}}
{{- end -}}
{{- end -}}
{{- if .Values.config.sqlite -}}
{{- $errors = append $errors "config.sqlite: pods do not share files. Name a MySQL or MariaDB server in config.mysql" -}}
{{- end -}}
{{- if and .Values.database.enabled .Values.config.mysql (not .Values.database.existingSecret) -}}
{{- $errors = append $errors "database.existingSecret: name the Secret with the database's user and password" -}}
{{- end -}}
{{- if and .Values.ingester.enabled (eq .Values.ingester.mode "alone") (gt (int .Values.ingester.replicas) 1) -}}
{{- $errors = append $errors (printf "ingester.mode alone with %d replicas: each would do all of the work. Set mode leader or shards, or replicas 1" (int .Values.ingester.replicas)) -}}
{{- end -}}
{{- if .Values.api.enabled -}}
{{- if not .Values.api.tls.secretName -}}
{{- $errors = append $errors "api.tls.secretName: the API server receives bearer tokens and needs a certificate. Name a Secret of type kubernetes.io/tls" -}}
{{- end -}}
{{- if not (include "kindex.ingesterMayRun" .) -}}
{{- $errors = append $errors "api.enabled without a database: there are no stored objects to serve. Set config.metadataStorage.enableMetadataStorage, database.enabled and config.mysql, or api.enabled=false" -}}
{{- end -}}
{{- end -}}
{{- with .Values.runs -}}
{{- if and .enabled (not .keys.existingSecret) -}}
{{- $errors = append $errors "runs.keys.existingSecret: name the Secret with an API key (keys.adminKey) and the signing secrets (keys.signingSecrets)" -}}
{{- end -}}
{{- if and .enabled (not .tls.secretName) (not .options.allowPlaintext) -}}
{{- $errors = append $errors "runs.tls.secretName: API keys and data would pass unencrypted. Name a Secret of type kubernetes.io/tls, or set runs.options.allowPlaintext where a proxy has the certificate" -}}
{{- end -}}
{{- if and .tls.secretName .options.allowPlaintext -}}
{{- $errors = append $errors "runs.options.allowPlaintext has no effect with runs.tls.secretName. Set one of them" -}}
{{- end -}}
{{- end -}}
{{- with .Values.deletion -}}
{{- $nats := dig "options" "nats" "url" "" . -}}
{{- $notify := dig "options" "notify" "url" "" . -}}
{{- $keys := default dict .keys -}}
{{- if and .enabled $nats (not (include "kindex.ingesterMayRun" $)) -}}
{{- $errors = append $errors "deletion.options.nats.url without a database: events are read from it. Set config.metadataStorage.enableMetadataStorage, database.enabled and config.mysql" -}}
{{- end -}}
{{- if and (or $keys.natsToken $keys.natsCa) (not (and $nats $keys.existingSecret)) -}}
{{- $errors = append $errors "deletion.keys.natsToken and natsCa name keys of deletion.keys.existingSecret, for deletion.options.nats.url. Set all of them" -}}
{{- end -}}
{{- if and (or $keys.notifyToken $keys.notifyCa) (not (and (hasPrefix "https://" $notify) $keys.existingSecret)) -}}
{{- $errors = append $errors "deletion.keys.notifyToken and notifyCa name keys of deletion.keys.existingSecret, for an https:// URL in deletion.options.notify.url. Set all of them" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.retention.enabled .Values.retention.deletion (not .Values.deletion.enabled) -}}
{{- $errors = append $errors "retention.deletion without deletion.enabled: nobody would carry the deletions out. Set deletion.enabled, or retention.deletion=false" -}}
{{- end -}}
{{- if and .Values.migrator.enabled .Values.migrator.options.webhookOnly (not .Values.migrator.tls.secretName) -}}
{{- $errors = append $errors "migrator.tls.secretName: a webhook alone has no rights to keep a certificate. Name a Secret of type kubernetes.io/tls" -}}
{{- end -}}
{{- with .Values.api.aggregation -}}
{{- if and .enabled (not $.Values.api.enabled) -}}
{{- $errors = append $errors "api.aggregation.enabled without api.enabled: kube-apiserver would have no server for its requests. Set api.enabled" -}}
{{- end -}}
{{- if and .enabled (not .caBundle) (not .annotations) -}}
{{- $errors = append $errors "api.aggregation.caBundle: kube-apiserver needs it to trust the server. Set the CA of the certificate, or an annotation for cert-manager" -}}
{{- end -}}
{{- end -}}
{{- if $errors -}}
{{- fail (printf "\n\n%s\n" (join "\n" $errors)) -}}
{{- end -}}
{{- end }}
