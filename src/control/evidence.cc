// SPDX-License-Identifier: Apache-2.0
#include "control/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace rudderfish {
namespace {

constexpr size_t kTold = 3;

int TermNamed(std::string_view name) {
  const auto& names = TermNames();
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

// A latency that is made of that part alone.
Terms OnePart(const Terms& terms, int term) {
  const auto of = [&](int part) { return part == term ? TermValue(terms, part) : 0; };
  return {.latency_ms = TermValue(terms, term),
          .execution_ms = of(1),
          .network_ms = of(2),
          .transfer_ms = of(3),
          .queueing_ms = of(4)};
}

std::string PlaceOf(const State& state, PodId pod) {
  const NodeId node = state.pods.node[pod];
  return node == kNone ? "" : NodeName(state, node);
}

}  // namespace

double StudentQuantile(int64_t freedom) {
  static constexpr std::array<double, 30> kTable = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (freedom <= 30) return kTable[static_cast<size_t>(freedom - 1)];
  constexpr double kNormal = 1.959964;
  return kNormal + (kNormal * kNormal * kNormal + kNormal) / (4.0 * static_cast<double>(freedom));
}

void EvidenceSum::Add(double error_ms) {
  ++count;
  error_sum += error_ms;
  error_squares += error_ms * error_ms;
  absolute_sum += std::abs(error_ms);
}

std::optional<double> EvidenceSum::interval_ms() const {
  if (count < 2) return std::nullopt;
  const auto n = static_cast<double>(count);
  const double variance = std::max(0.0, (error_squares - error_sum * error_sum / n) / (n - 1));
  return StudentQuantile(count - 1) * std::sqrt(variance / n);
}

std::string DescribeChange(const State& before, const State& after) {
  std::unordered_map<std::string, std::string> places;  // Of pods that run.
  for (PodId pod = 0; pod < before.pods.size(); ++pod) {
    if (before.pods.node[pod] == kNone) continue;
    places.emplace(PodName(before, pod), PlaceOf(before, pod));
  }
  std::vector<std::string> changes;
  for (PodId pod = 0; pod < after.pods.size(); ++pod) {
    if (after.pods.node[pod] == kNone) continue;
    std::string name = PodName(after, pod), place = PlaceOf(after, pod);
    const auto was = places.find(name);
    if (was == places.end()) {
      changes.push_back(fmt::format("{} new on {}", name, place));
      continue;
    }
    if (was->second != place) {
      changes.push_back(fmt::format("{} from {} to {}", name, was->second, place));
    }
    places.erase(was);
  }
  std::vector<std::string> gone;
  for (const auto& [name, place] : places) {
    gone.push_back(fmt::format("{} gone from {}", name, place));
  }
  std::sort(gone.begin(), gone.end());
  changes.insert(changes.end(), gone.begin(), gone.end());
  const size_t count = changes.size();
  changes.resize(std::min(count, kTold));
  std::string text = fmt::format("{}", fmt::join(changes, ", "));
  if (count > kTold) text += fmt::format(" and {} more", count - kTold);
  return text;
}

EvidenceWatch::EvidenceWatch(std::string application, const LatencyLaw& law,
                             const EvidenceOptions& options, EvidenceSink* sink)
    : application_(std::move(application)),
      model_(law),
      uncorrected_(law),
      options_(options),
      sink_(sink) {}

Result<void> EvidenceWatch::Observe(const State& state, std::span<const Reading> readings) {
  if (!seen_) {
    last_ = state;
    seen_ = true;
  } else if (state.version != last_.version) {
    NoteChange(state);
  }
  for (const Reading& reading : readings) Take(reading);
  if (!waiting_) return {};
  if (Settled() || state.at - changed_at_ > options_.patience) return Conclude();
  return {};
}

EvidenceWatch::Change EvidenceWatch::Predict(const State& state, Evaluator* model) const {
  Change change;
  const auto add = [&](const State& of, double sign) {
    model->Reset(of);
    AddTerms(model->Now(), sign, &change.mean);
    change.endpoints.resize(of.calls->endpoints.size());
    for (size_t i = 0; i < change.endpoints.size(); ++i)
      AddTerms(model->EndpointTerms(static_cast<int>(i)), sign, &change.endpoints[i]);
  };
  add(state, 1);
  add(changed_from_, -1);
  return change;
}

void EvidenceWatch::NoteChange(const State& state) {
  const std::string change = DescribeChange(last_, state);
  if (!change.empty() && state.calls->endpoints.size() == last_.calls->endpoints.size()) {
    ++changes_seen_;
    if (!waiting_) {
      changed_from_ = last_;
      change_ = change;
      told_ = 0;
      if (!ReadBefore(state)) {  // What comes afterwards would be compared with nothing.
        ++changes_unmeasured_;
        changed_at_ = state.at;
        has_changed_ = true;
        last_ = state;
        return;
      }
    } else {
      change_ += "; then " + change;
      change_.resize(std::min<size_t>(change_.size(), 1000));
    }
    for (Track& track : tracks_) track.after.reset();
    predicted_ = Predict(state, &model_);
    predicted_uncorrected_ = Predict(state, &uncorrected_);
    changed_at_ = state.at;
    has_changed_ = waiting_ = true;
  }
  last_ = state;
}

// A reading that the change before this one is still in says nothing of the time between them.
bool EvidenceWatch::ReadBefore(const State& state) {
  bool any = false;
  for (Track& track : tracks_) {
    track.before.reset();
    const bool is_settled =
        !has_changed_ || track.newest.at - track.newest.window >= changed_at_ + options_.settle;
    if (track.newest.at > state.at || !is_settled) continue;
    track.before = track.newest;
    any = true;
  }
  return any;
}

void EvidenceWatch::Take(const Reading& reading) {
  if (TermNamed(reading.term) < 0 || !std::isfinite(reading.value_ms)) return;
  if (!reading.endpoint.empty() && reading.term != TermNames()[0]) return;
  auto track = std::find_if(tracks_.begin(), tracks_.end(), [&](const Track& one) {
    return one.newest.endpoint == reading.endpoint && one.newest.term == reading.term;
  });
  if (track == tracks_.end()) {
    tracks_.push_back({.newest = reading, .before = std::nullopt, .after = std::nullopt});
    return;  // First read after the change: there is nothing to compare with.
  }
  if (reading.at <= track->newest.at) return;  // Read before.
  track->newest = reading;
  if (!waiting_ || !track->before || track->after) return;
  if (reading.at - reading.window >= changed_at_ + options_.settle) track->after = reading;
}

bool EvidenceWatch::Settled() const {
  return std::all_of(tracks_.begin(), tracks_.end(),
                     [](const Track& track) { return !track.before || track.after; }) &&
         std::any_of(tracks_.begin(), tracks_.end(),
                     [](const Track& track) { return track.after.has_value(); });
}

std::optional<Terms> EvidenceWatch::Change::Of(const CallGraph& calls,
                                               const Reading& reading) const {
  if (reading.endpoint.empty()) {
    const int term = TermNamed(reading.term);
    return term == 0 ? mean : OnePart(mean, term);
  }
  for (size_t i = 0; i < calls.endpoints.size(); ++i) {
    if (calls.endpoints[i].name == reading.endpoint) return endpoints[i];
  }
  return std::nullopt;
}

Result<void> EvidenceWatch::Conclude() {
  bool measured = false;
  for (size_t i = 0; i < tracks_.size(); ++i) {
    const Track& track = tracks_[i];
    if (!track.before || !track.after) continue;
    const std::optional<Terms> predicted = predicted_.Of(*last_.calls, *track.after);
    if (!predicted) continue;
    measured = true;
    if (i < told_) continue;  // Before the journal could not be written.
    TRY(sink_->AppendEvidence(
        {.application = application_,
         .change = change_,
         .endpoint = track.after->endpoint,
         .term = track.after->term,
         .source = track.after->source,
         .predicted_change_ms = predicted->latency_ms,
         .measured_change_ms = track.after->value_ms - track.before->value_ms,
         .model = options_.model,
         .uncorrected = *predicted_uncorrected_.Of(*last_.calls, *track.after)}));
    told_ = i + 1;
  }
  ++(measured ? changes_measured_ : changes_unmeasured_);
  waiting_ = false;
  return {};
}

}  // namespace rudderfish
