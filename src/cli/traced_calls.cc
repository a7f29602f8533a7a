// SPDX-License-Identifier: Apache-2.0
#include "cli/traced_calls.h"

#include <fmt/format.h>

#include <cmath>

#include "base/files.h"
#include "base/one_line.h"
#include "base/text_table.h"
#include "base/units.h"
#include "base/wall_time.h"
#include "base/yaml_writer.h"
#include "cli/terminal.h"
#include "run/trace_places.h"
#include "run/traced_application.h"
#include "scenario/application_writer.h"
#include "telemetry/jaeger_client.h"
#include "telemetry/span_reader.h"

namespace rudderfish {
namespace {

constexpr double kLookBackS = 3600;
constexpr double kToldSkewMs = 1;
constexpr double kFewWhole = 0.5;  // Of all traces.

Result<void> ReadFromServer(const Arguments& arguments, const Session& session, SpanSet* set) {
  JaegerQuery query{.url = *arguments.Text("traces")};
  TRY_ASSIGN(const double seconds, arguments.Seconds("for", kLookBackS));
  query.to_unix = static_cast<double>(UnixNow()) / 1000;
  query.from_unix = query.to_unix - seconds;
  TRY_ASSIGN(const JaegerAnswer answer, FetchSpans(query, set));
  for (const std::string& service : answer.cut) {
    Say(session, "Of {} only the newest {} traces were read", service, Grouped(query.traces_max));
  }
  return {};
}

Result<void> ReadFromFile(const std::string& path, SpanSet* set) {
  TRY_ASSIGN(const std::string text, ReadFile(path));
  return ReadSpans(text, path, set);
}

// What a reader of the numbers should know.
void SayWhatIsOdd(const Session& session, const Application& application,
                  const InferredGraph& graph, const std::vector<std::string>& unknown) {
  for (const ClockOffset& one : graph.clocks) {
    const double ms = static_cast<double>(one.offset_ns) / 1e6;
    if (std::abs(ms) < kToldSkewMs) continue;
    Say(session, "The clock of {} is {:.1f} ms {}; taken out", one.clock, std::abs(ms),
        ms > 0 ? "fast" : "slow");
  }
  const auto& workloads = application.catalog->workloads;
  for (const auto& [call, count] : graph.asynchronous) {
    Say(session, "Not awaited, and so no part of a request: {} -> {}, in {}",
        call.caller == kNone ? "the client" : workloads[call.caller].name,
        workloads[call.callee].name, Counted(count, "trace"));
  }
  if (!unknown.empty()) {
    Say(session, "Services of no workload of the application, whose spans are passed over: {}",
        fmt::join(unknown, ", "));
  }
  int64_t left_out = 0;
  for (const auto& [reason, count] : graph.traces_left_out) left_out += count;
  if (static_cast<double>(graph.traces) <
      kFewWhole * static_cast<double>(graph.traces + left_out)) {
    Say(session,
        "Warning: {} of {} show a whole request. What is seen may not be what requests usually "
        "are.",
        Grouped(graph.traces), Counted(graph.traces + left_out, "trace"));
  }
}

void SayLines(const Session& session, std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    Say(session, "{}", text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

std::string CommentOf(const std::string& text) {
  YamlWriter out;
  out.Comment(text);
  return out.Take();
}

}  // namespace

bool IsTraceServer(const Arguments& arguments) {
  const std::string text = arguments.Text("traces").value_or("");
  return text.starts_with("http://") || text.starts_with("https://");
}

Result<TracedCalls> ReadTracedCalls(const Arguments& arguments, const Session& session,
                                    const std::shared_ptr<const Application>& application,
                                    const ClusterSource& source) {
  TRY_ASSIGN(const double sampled, ShareOf(arguments, "sampled"));
  const std::string name = *arguments.Text("traces");
  SpanSet set;
  TRY(IsTraceServer(arguments) ? ReadFromServer(arguments, session, &set)
                               : ReadFromFile(name, &set));
  std::vector<std::string> unknown;
  const SpanPlaces places = TracePlaces(application, *source.mirror).Of(set, &unknown);
  Result<InferredGraph> graph = InferCalls(places, {}, &set);
  if (!graph) {
    const std::string hint = unknown.empty() ? ""
                                             : fmt::format("; of no workload are the services {}",
                                                           fmt::join(unknown, ", "));
    return Fail(graph.error().code, "{}: {}{}", name, graph.error().message, hint);
  }
  TRY_ASSIGN(TracedApplication traced, WithTracedCalls(*application, *graph, sampled));
  if (application->calls->call_count() > static_cast<int>(application->calls->endpoints.size())) {
    Say(session, "The calls of {} are replaced by those of the traces",
        arguments.Text("application").value_or("the application"));
  }
  const std::string told = TracesText(*graph, set.left_out), table = TracedTimesText(traced);
  SayLines(session, told);
  SayWhatIsOdd(session, *application, *graph, unknown);
  SayLines(session, "\n" + table + "\n");
  std::string comment =
      fmt::format("Calls and execution times are those of {}:\n{}\n{}",
                  IsTraceServer(arguments) ? "traces" : OneLine(name), told, table);
  comment.pop_back();
  if (const auto path = arguments.Text("application-out")) {
    TRY(WriteFileAtomically(*path, ApplicationText(*traced.application, comment)));
    Say(session, "Wrote {}: {}", *path,
        Counted(static_cast<int64_t>(graph->endpoints.size()), "endpoint"));
  }
  return TracedCalls{std::move(traced.application), CommentOf(comment)};
}

}  // namespace rudderfish
