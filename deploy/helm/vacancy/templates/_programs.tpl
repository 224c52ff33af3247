{{/* Name of the service whose pods have names: NAME.SERVICE.NAMESPACE.svc.DOMAIN. */}}
{{- define "vacancy.pods" -}}
{{ eq .Values.mode "platform" | ternary .Release.Name .Values.platform }}
{{- end }}

{{/* The end of all names in the namespace. */}}
{{- define "vacancy.domain" -}}
{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{/* Registry and resolver, for routers, bridges and nodes. */}}
{{- define "vacancy.upward" -}}
registry-addr: http://{{ include "vacancy.pods" . }}-registry:8080
resolver-addr: http://{{ include "vacancy.pods" . }}-resolver:9090
registry-token-file: /etc/vacancy/secret/registry.token
{{- end }}

{{/* Listeners of routers and bridges. Others than routers are kept off by the network policy. */}}
{{- define "vacancy.hop" -}}
listen-host: '{{ .Values.listenAddress }}'
api-host: '{{ .Values.listenAddress }}'
cache-dir: /data
{{ include "vacancy.upward" . }}
{{- end }}

{{/*
The programs of a release by the ends of their names:
  values         section of the values
  job            in Prometheus
  command, args  of vacancy
  tls            secret with the certificate of a listener
  secrets        variables of the program → keys of the secret
  ports          of its listeners; http has /health, /ready and /metrics
  from           port → components that use it; clients are those of the network policy
  stopSecs       until the program ends itself after SIGTERM
  handsOver      hands leadership over first
  whole          cores count in whole numbers: they are a limit, too
*/}}
{{- define "vacancy.programs" -}}
{{- $pods := include "vacancy.pods" . -}}
{{- $domain := include "vacancy.domain" . -}}
{{- if eq .Values.mode "shard" }}
{{- $voters := list }}
{{- range until (int .Values.node.voters) }}
{{- $voters = append $voters (printf "%s-node-%d" $.Release.Name .) }}
{{- end }}
{{- $login := index .Values.node.settings "tcp-require-login" }}
node:
  values: node
  job: vacancy-node
  replicas: {{ add .Values.node.voters .Values.node.learners }}
  command: [run-clustered]
  args:
    node-id: $(POD_NAME)
    shard-id: '{{ .Release.Name }}'
    zone-id: '{{ .Values.zone }}'
    initial-voters: {{ join "," $voters }}
    data-dir: /data
    tcp-listen-addr: '{{ .Values.listenAddress }}'
    api-listen-addr: '{{ .Values.listenAddress }}'
    quic-listen-addr: '{{ .Values.listenAddress }}'
    auth-file: /etc/vacancy/secret/nodes.yml
    {{- if .Values.certificates.shared }}
    cert-path: /etc/vacancy/certificates/tls.crt
    key-path: /etc/vacancy/certificates/tls.key
    ca-cert-path: /etc/vacancy/certificates/ca.crt
    {{- else }}
    cert-path: /etc/vacancy/certificates/$(POD_NAME).pem
    key-path: /etc/vacancy/certificates/$(POD_NAME).key
    ca-cert-path: /etc/vacancy/certificates/ca.pem
    {{- end }}
    {{- include "vacancy.upward" . | nindent 4 }}
  certificates: true
  ports: { tcp: 7777, http: 8080, peers: 17777 }
  from: { tcp: [bridge, control-plane, clients], http: [node, bridge, control-plane], peers: [node] }
  stopSecs: 15
  handsOver: true
  whole: true
bridge:
  values: bridge
  job: vacancy-bridge
  command: [bridge]
  args:
    zone-id: '{{ .Values.zone }}'
    shard-id: '{{ .Release.Name }}'
    bridge-id: $(POD_NAME)
    api-url: http://$(POD_NAME).{{ $pods }}.{{ $domain }}:9100
    allow-anonymous: true
    {{- if $login }}
    node-token-file: /etc/vacancy/secret/client.token
    {{- end }}
    {{- include "vacancy.hop" . | nindent 4 }}
  ports: { tcp: 9000, http: 9100 }
  from: { tcp: [zone-router], http: [control-plane] }
  stopSecs: 15
{{- else }}
registry:
  values: registry
  job: vacancy-registry
  command: [registry]
  args:
    addr: '{{ .Values.listenAddress }}'
    auth-file: /etc/vacancy/secret/registry.yml
    codecs-path: /etc/vacancy/files/codecs.yml
    state-file: /data/state.json
  files: true
  ports: { http: 8080 }
  from: { http: [node, bridge, zone-router, edge-router, control-plane] }
  stopSecs: 15
resolver:
  values: resolver
  job: vacancy-resolver
  command: [resolver]
  args:
    host: '{{ .Values.listenAddress }}'
    file: /etc/vacancy/files/resolver.yml
  files: true
  ports: { http: 9090 }
  from: { http: [node, bridge, zone-router, edge-router, control-plane] }
  stopSecs: 15
{{- range .Values.zones }}
zone-router-{{ . }}:
  component: zone-router
  values: zoneRouter
  job: vacancy-router
  command: [router]
  args:
    mode: zone
    zone-id: '{{ . }}'
    router-id: $(POD_NAME)
    api-url: http://$(POD_NAME).{{ $pods }}.{{ $domain }}:9100
    allow-anonymous: true
    {{- include "vacancy.hop" $ | nindent 4 }}
  ports: { tcp: 9000, http: 9100 }
  from: { tcp: [edge-router], http: [control-plane] }
  stopSecs: 15
{{- end }}
edge-router:
  values: edgeRouter
  job: vacancy-router
  command: [router]
  args:
    mode: edge
    {{- if .Values.edgeRouter.login }}
    auth-file: /etc/vacancy/secret/edge.yml
    require-login: true
    {{- else }}
    allow-anonymous: true
    {{- end }}
    {{- include "vacancy.hop" . | nindent 4 }}
  ports: { tcp: 9000, http: 9100 }
  from: { tcp: [proxy, control-plane, clients], http: [control-plane] }
  stopSecs: 15
proxy:
  values: proxy
  job: vacancy-proxy
  command: [proxy]
  args:
    mode: router
    upstream-addr: {{ $pods }}-edge-router
    listening-addr: '{{ .Values.listenAddress }}'
    {{- if .Values.proxy.login }}
    auth-enabled: true
    tokens-path: /etc/vacancy/secret/proxy.yml
    {{- else }}
    allow-anonymous: true
    {{- end }}
    {{- if .Values.proxy.tlsSecret }}
    https-enabled: true
    tls-cert-path: /etc/vacancy/tls/tls.crt
    tls-key-path: /etc/vacancy/tls/tls.key
    {{- end }}
  {{- if .Values.proxy.tlsSecret }}
  tls: {{ .Values.proxy.tlsSecret }}
  ports: { http: 8777, https: 3443 }
  from: { http: [control-plane], https: [control-plane, clients] }
  {{- else }}
  ports: { http: 8777 }
  from: { http: [control-plane, clients] }
  {{- end }}
  stopSecs: 15
queue:
  values: queue
  job: vacancy-queue
  command: [queue, serve]
  args:
    listen-host: '{{ .Values.listenAddress }}'
    allowed-hosts: {{ $pods }}-queue,{{ $pods }}-queue.{{ $domain }}
    advertise-url: http://$(POD_NAME).{{ $pods }}.{{ $domain }}:8080
    data-dir: /data
    auth-file: /etc/vacancy/secret/queue.yml
  {{- if .Values.queue.postgres }}
  secrets: { VACANCY_QUEUE_DATABASE_URL: database-url }
  {{- end }}
  ports: { http: 8080 }
  from: { http: [control-plane, clients] }
  stopSecs: 20
control-plane:
  values: controlPlane
  job: vacancy-control-plane
  command: [control-plane]
  args:
    listen-host: '{{ .Values.listenAddress }}'
    base-url: {{ .Values.controlPlane.url | default (printf "http://%s-control-plane.%s:8000" $pods $domain) }}
    allowed-hosts: {{ $pods }}-control-plane,{{ $pods }}-control-plane.{{ $domain }}
    data-dir: /data
    registry: http://{{ $pods }}-registry:8080
    resolver: http://{{ $pods }}-resolver:9090
    {{- $fabric := list }}
    {{- range until (int .Values.edgeRouter.replicas) }}
    {{- $fabric = append $fabric (printf "http://%s-edge-router-%d.%s.%s:9100" $pods . $pods $domain) }}
    {{- end }}
    {{- range until (int .Values.proxy.replicas) }}
    {{- $fabric = append $fabric (printf "http://%s-proxy-%d.%s.%s:8777" $pods . $pods $domain) }}
    {{- end }}
    fabric: {{ join "," $fabric }}
    {{- if .Values.queue.replicas }}
    queue-url: http://{{ $pods }}-queue:8080
    {{- end }}
  secrets:
    VACANCY_CONTROL_PLANE_NODE_MONITORING_TOKEN: monitoring.token
    VACANCY_CONTROL_PLANE_NODE_CLIENT_TOKEN: client.token
    VACANCY_CONTROL_PLANE_NODE_ADMIN_TOKEN: admin.token
    VACANCY_CONTROL_PLANE_REGISTRY_TOKEN: registry.token
    {{- if .Values.queue.replicas }}
    VACANCY_CONTROL_PLANE_QUEUE_TOKEN: queue.token
    {{- end }}
    {{- if index .Values.controlPlane.settings "oidc-issuer" }}
    VACANCY_CONTROL_PLANE_OIDC_CLIENT_SECRET: oidc-client-secret
    {{- end }}
    {{- if .Values.controlPlane.postgres }}
    VACANCY_CONTROL_PLANE_DATABASE_URL: database-url
    {{- end }}
  ports: { http: 8000 }
  from: { http: [node, clients] }
  stopSecs: 25
{{- end }}
{{- end }}
