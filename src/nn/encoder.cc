// SPDX-License-Identifier: Apache-2.0
#include "nn/encoder.h"

#include <algorithm>
#include <iterator>

#include "base/suggest.h"

namespace rudderfish::nn {

Result<Encoder> EncoderNamed(std::string_view name) {
  const auto* found = std::find(std::begin(kEncoderNames), std::end(kEncoderNames), name);
  if (found != std::end(kEncoderNames)) {
    return static_cast<Encoder>(found - std::begin(kEncoderNames));
  }
  return Invalid("unknown encoder `{}`: expected {}{}", name, fmt::join(kEncoderNames, ", "),
                 DidYouMean(name, kEncoderNames));
}

MessageParts PartsOf(Encoder encoder) {
  switch (encoder) {
    case Encoder::kRelational:
    case Encoder::kGcn:
    case Encoder::kGatv2:
      return {.node = 2, .workload = 4};
    case Encoder::kDeepSets:
      return {.node = 3, .workload = 3};
    case Encoder::kMlp:
      break;
  }
  return {};
}

}  // namespace rudderfish::nn
