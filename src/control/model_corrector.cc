// SPDX-License-Identifier: Apache-2.0
#include "control/model_corrector.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/log.h"
#include "control/model_correction.h"

namespace rudderfish {
namespace {

bool DifferEnough(const LatencyFactors& a, const LatencyFactors& b) {
  const auto differ = [](double one, double other) {
    return std::abs(one - other) >= ModelCorrector::kLeastChange;
  };
  return differ(a.execution, b.execution) || differ(a.network, b.network) ||
         differ(a.transfer, b.transfer) || differ(a.queueing, b.queueing);
}

}  // namespace

void ModelCorrector::Follow(ApplicationRun* run) {
  const int64_t measured = run->evidence().changes_measured();
  const auto [seen, is_first] = seen_.emplace(run->name(), measured);
  if (!is_first && seen->second == measured) return;
  const std::string& model = run->options().evidence.model;
  Result<std::vector<MeasuredChange>> changes = moves_->Changes();
  if (!changes) {  // It tells of its own trouble, and is asked again.
    seen_.erase(seen);
    return;
  }
  seen->second = measured;
  std::erase_if(*changes, [&](const MeasuredChange& one) {
    return one.application != run->name() || one.model != model;
  });
  if (changes->empty()) return;
  const ModelCorrection correction = FitCorrection(*changes);
  const LatencyFactors factors = correction.ToApply();
  if (!DifferEnough(factors, run->factors())) return;
  if (const Result<void> written = moves_->AppendCorrection(correction, model); !written) {
    LogWarning("{}: the model is not corrected: {}", run->name(), written.error().message);
    return;
  }
  run->Correct(factors);
  const std::string words = InWords(factors);
  if (words.empty()) {
    LogInfo("{}: the model is not corrected any more: it predicts no worse as it is", run->name());
  } else {
    LogInfo(
        "{}: the model is corrected from {} measured changes: {}; mean size of its error {:.2f} "
        "ms, {:.2f} ms with that",
        run->name(), correction.changes, words, correction.error_ms, correction.corrected_error_ms);
  }
}

}  // namespace rudderfish
