// SPDX-License-Identifier: Apache-2.0
#include "scenario/distribution.h"

#include <algorithm>

#include "base/check.h"

namespace rudderfish {

Distribution Distribution::Uniform(double low, double high) {
  CHECK_LE(low, high);
  if (low == high) return Constant(low);
  return {Shape::kUniform, {low, high}};
}

Distribution Distribution::Choice(std::vector<double> values) {
  CHECK(!values.empty());
  if (values.size() == 1) return Constant(values[0]);
  return {Shape::kChoice, std::move(values)};
}

double Distribution::min() const { return *std::min_element(values_.begin(), values_.end()); }

double Distribution::max() const { return *std::max_element(values_.begin(), values_.end()); }

}  // namespace rudderfish
