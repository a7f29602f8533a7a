#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The gateway of a cluster of the testbed, on its node door-1: HAProxy, which sends requests of the cluster's users (port 8000) to its own
# pods or to the gateway of the other cluster (port 8001 there). A pod gets one request at a time; the others wait here. follow.py
# keeps its pods up to date.
#
#   gateway.sh NAME OTHER ADDRESS      ADDRESS: of OTHER, as `testbed link` prints it
set -eu
name=$1 other=$2 address=$3
top=$(cd "$(dirname "$0")/../.." && pwd)
config=/tmp/gateway-$name.cfg
cat >"$config" <<CONFIG
global
  stats socket /tmp/gateway-$name.sock mode 600 level admin
defaults
  mode http
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout queue 20s
frontend users
  bind :8000
  default_backend web
frontend peers
  bind :8001
  monitor-uri /ready
  monitor fail if { nbsrv(local) lt 1 }
  default_backend local
frontend metrics
  bind :8404
  http-request use-service prometheus-exporter if { path /metrics }
backend web
  balance roundrobin
  option httpchk GET /ready
  server $name 127.0.0.1:8001 check weight 255
  server $other $address:8001 check weight 1
backend local
  balance leastconn
  option httpchk GET /ready
  server-template pod 1-16 127.0.0.1:8080 check inter 1s maxconn 1 disabled
CONFIG
rm -f "/tmp/gateway-$name.sock"
# One that runs from before would get a part of the requests.
before=$("$top/testbed/testbed" exec --name "$name" door-1 -- busybox pidof haproxy || true)
# shellcheck disable=SC2086
"$top/testbed/testbed" exec --name "$name" door-1 -- haproxy -D -f "$config" ${before:+-st $before}
# In the background, until the socket is gone.
"$top/examples/clouds/follow.py" "$name" </dev/null >"/tmp/gateway-$name.log" 2>&1 &
