// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "base/rng.h"

// What a quantity of a scenario may be: one value, any value of a range, or one of a list. The unit
// is that of the field it stands in. Immutable; any thread may draw with its own generator.

namespace rudderfish {

class Distribution {
 public:
  enum class Shape { kConstant, kUniform, kChoice };

  Distribution() : values_{0.0} {}
  static Distribution Constant(double value) { return {Shape::kConstant, {value}}; }
  static Distribution Uniform(double low,
                              double high);  // Constant if equal. REQUIRES: low <= high.
  static Distribution Choice(
      std::vector<double> values);  // Constant if single. REQUIRES: at least one.

  double Draw(Rng* rng) const {
    switch (shape_) {
      case Shape::kConstant:
        break;
      case Shape::kUniform:
        return rng->Uniform(values_[0], values_[1]);
      case Shape::kChoice:
        return values_[rng->Below(static_cast<uint32_t>(values_.size()))];
    }
    return values_[0];
  }

  // Counts: both ends of a range are included. REQUIRES: all values are integers.
  int DrawInteger(Rng* rng) const {
    if (shape_ != Shape::kUniform) return static_cast<int>(Draw(rng));
    return rng->Between(static_cast<int>(values_[0]), static_cast<int>(values_[1]));
  }

  double min() const;
  double max() const;
  Shape shape() const { return shape_; }
  std::span<const double> values() const {
    return values_;
  }  // {value}, {low, high} or the choices.

  bool operator==(const Distribution&) const = default;

 private:
  Distribution(Shape shape, std::vector<double> values)
      : shape_(shape), values_(std::move(values)) {}

  Shape shape_ = Shape::kConstant;
  std::vector<double> values_;
};

}  // namespace rudderfish
