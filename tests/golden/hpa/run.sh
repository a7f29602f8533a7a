#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Regenerates decisions.jsonl: decisions of Kubernetes' own HorizontalPodAutoscaler controller, of the version that the
# testbed builds. Needs Go and the modules that `testbed/testbed build` fetches.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
modules=$here/../../../testbed/modules/kubernetes-v1.36.3
export GOFLAGS=-mod=mod GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$modules/go.mod" "$modules/go.sum" "$work"
cd "$work"
package=$(go list -f '{{.Dir}}' k8s.io/kubernetes/pkg/controller/podautoscaler)
mkdir podautoscaler
cp "$package/horizontal.go" "$package/rate_limiters.go" "$package/replica_calculator.go" "$here/decisions_test.go" podautoscaler
chmod -R u+w podautoscaler
GOLDEN_OUT="$here/decisions.jsonl" go test -run TestWriteGoldenDecisions -count=1 ./podautoscaler
