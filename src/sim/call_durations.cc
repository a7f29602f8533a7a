// SPDX-License-Identifier: Apache-2.0
#include "sim/call_durations.h"

#include <cmath>

#include "base/check.h"

namespace rudderfish {

CallDurations::CallDurations(const ServedApplication& application) {
  const CallGraph& graph = *application.calls;
  CHECK_EQ(application.service_ms.size(), graph.calls.size());
  for (CallId call = 0; call < graph.call_count(); ++call) {
    const ServiceLaw& law = application.workloads[graph.calls[call].workload].service;
    Plan plan{.shape = law.shape, .mean_ns = application.service_ms[call] * 1e6};
    if (law.shape == ServiceLaw::Shape::kLogNormal) {
      const double variance = std::log1p(law.scv);
      plan.a = std::log(plan.mean_ns) - variance / 2;
      plan.b = std::sqrt(variance);
    } else if (law.shape == ServiceLaw::Shape::kHyperexponential) {
      CHECK_GT(law.scv, 1.0);
      plan.a = (1 + std::sqrt((law.scv - 1) / (law.scv + 1))) / 2;
      plan.b = 1 / (2 * plan.a);
      plan.c = 1 / (2 * (1 - plan.a));
    }
    plans_.push_back(plan);
  }
}

int64_t CallDurations::DrawNs(CallId call) {
  const Plan& plan = plans_[call];
  double ns = plan.mean_ns;
  switch (plan.shape) {
    case ServiceLaw::Shape::kConstant:
      break;
    case ServiceLaw::Shape::kExponential:
      ns *= -std::log(1 - chance_.Uniform());
      break;
    case ServiceLaw::Shape::kLogNormal:
      ns = std::exp(plan.a + plan.b * chance_.Normal());
      break;
    case ServiceLaw::Shape::kHyperexponential: {
      const double stretch = chance_.Uniform() < plan.a ? plan.b : plan.c;
      ns *= -stretch * std::log(1 - chance_.Uniform());
      break;
    }
  }
  return static_cast<int64_t>(ns) + 1;
}

}  // namespace rudderfish
