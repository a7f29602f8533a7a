// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cloud/weighted_object.h"

// Objects of other projects that hold a split, beside the Gateway API's HTTPRoute:
//
//   virtualservice     Istio (networking.istio.io/v1): weights of one `http` rule; they sum to 100.
//                      A backend is a destination's host, "/" and its subset, if it has one.
//   destinationrule    Istio: one rule of localityLbSetting.distribute, from one locality to
//                      others; they sum to 100. A backend is a locality.
//   dnsendpoint        ExternalDNS (externaldns.k8s.io/v1alpha1): weights of records of one name,
//                      the provider property aws/weight, 0 to 255. A backend is a setIdentifier.
//   propagationpolicy  Karmada (policy.karmada.io/v1alpha1): weights of clusters by which replicas
//                      are divided. A backend is a cluster.
//
// A Service of the cluster behind a VirtualService says whether it is healthy. The others show no
// health: regions get nothing until they are told to be healthy (TellHealth).

namespace rudderfish {

enum class SplitObjectKind { kVirtualService, kDestinationRule, kDnsEndpoint, kPropagationPolicy };
inline constexpr int kSplitObjectKinds = 4;

struct SplitObjectRow {
  std::string_view name;  // Of an option and a key: virtualservice.
  std::string_view group, version, plural;
  int64_t weight_sum;
};
const SplitObjectRow& RowOf(SplitObjectKind kind);

struct SplitObjectChoice : ObjectChoice {
  SplitObjectKind kind = SplitObjectKind::kVirtualService;
  std::optional<int> rule;  // Of a VirtualService or a DestinationRule, from 0; none: the only one.
};

// kInvalidArgument: not such an object, or weights out of range; kNotFound: no such rule;
// kFailedPrecondition: it belongs to somebody who would set the weights back.
Result<WeightedObject> ReadSplitObject(std::string_view json, const SplitObjectChoice& choice);

class SplitObjectEnactor final : public WeightedObjectEnactor {
 public:
  // REQUIRES: `client` outlives this.
  SplitObjectEnactor(kube::ApiClient* client, SplitObjectChoice choice);

 protected:
  Result<WeightedObject> Parse(std::string_view json) const override {
    return ReadSplitObject(json, choice_);
  }

 private:
  SplitObjectChoice choice_;
};

}  // namespace rudderfish
