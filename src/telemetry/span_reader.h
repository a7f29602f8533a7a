// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "telemetry/spans.h"

// Traces from outside, in the two formats that others write:
//
//   Jaeger      {"data": [{"traceID", "spans": [...], "processes": {...}}]}, the answer of its
//               query API to /api/traces, which its page saves as a file
//   OTLP/JSON   {"resourceSpans": [...]}, one such object or one in each line, as OpenTelemetry's
//               collector writes files; also below "result", as Jaeger's /api/v3 answers
//
// No more than one trace of Jaeger, or one resource of OTLP, is held as JSON at a time. A bad span
// is left out and counted. Pure functions.

namespace rudderfish {

// Adds to `set`. kInvalidArgument, "file:line:column: ...", if the text is not of these formats or
// ends before it is complete; of lines, only if none of them is right.
Result<void> ReadSpans(std::string_view text, std::string_view source_name, SpanSet* set);

}  // namespace rudderfish
