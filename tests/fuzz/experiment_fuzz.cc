// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/yaml.h"
#include "base/yaml_change.h"
#include "evaluation/calibration.h"
#include "evaluation/experiment.h"

// Any bytes as an experiment, as a file of `calibrate`, and as a change of a document (the first
// line its path, the second its value): refused in one line, or what says the same when it is
// written and read again.

namespace {

template <class T>
void CheckRefusal(const rudderfish::Result<T>& result) {
  if (result) return;
  CHECK(!result.error().message.empty());
  CHECK(result.error().message.find('\n') == std::string::npos);
}

void Change(const rudderfish::YamlNode& root, std::string_view text) {
  const size_t first = text.find('\n');
  if (first == text.npos) return;
  const size_t second = std::min(text.find('\n', first + 1), text.size());
  CheckRefusal(
      rudderfish::ChangeYaml(root, {std::string(text.substr(0, first)),
                                    std::string(text.substr(first + 1, second - first - 1))}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto root = rudderfish::ParseYaml(text, "fuzz.yaml");
  CheckRefusal(root);
  if (!root) return 0;
  const auto experiment = rudderfish::ParseExperiment(*root);
  CheckRefusal(experiment);
  if (experiment) {
    const size_t of_each =
        experiment->scaling ? experiment->scaling->loads.size() : experiment->variants.size();
    CHECK_EQ(rudderfish::CellsOf(*experiment).size(), experiment->scenarios.size() * of_each);
  }
  const auto calibration = rudderfish::ParseCalibration(*root);
  CheckRefusal(calibration);
  if (calibration) {
    const std::string written = rudderfish::CalibrationYaml(*calibration);
    const auto again = rudderfish::ParseYaml(written, "again.yaml");
    CHECK(again.has_value());
    const auto back = rudderfish::ParseCalibration(*again);
    CHECK(back.has_value());
    CHECK(*back == *calibration);
  }
  Change(*root, text);
  return 0;
}
