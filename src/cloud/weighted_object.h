// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "cloud/json_text.h"
#include "cloud/split_enactor.h"
#include "kube/api_client.h"

// Weights that stand in an object of an API server, and are set by one JSON patch that names the
// version of the object it was read at. Which fields hold them, kinds of objects say.

namespace rudderfish {

inline constexpr std::string_view kFieldManager = "rudderfish";  // We, to an API server.

struct ObjectChoice {
  std::string name_space, name;
  std::vector<std::string> may_change;  // Field managers whose fields may be changed.
};

// "NAMESPACE/NAME". kInvalidArgument otherwise.
Result<ObjectChoice> ParseObjectChoice(std::string_view text);

// One weight of an object, and where it stands.
struct WeightField {
  std::string name;  // Of the backend.
  int64_t weight = 0;
  std::string path;                     // JSON pointer (RFC 6901) of the weight.
  std::string guard_path, guard_value;  // Must still hold for the patch: empty, none.
  bool is_text = false;                 // The number is written as a string.
  // Whose endpoints say its health; empty: nothing there does, for the reason in words.
  std::string health_service, health_namespace = {}, unseen = "its health is not seen there";
};

struct WeightedObject {
  std::string resource_version;
  std::vector<WeightField> fields;
  std::vector<std::string> notes;
};

// Text as one part of a JSON pointer.
std::string PointerPart(std::string_view text);

// That fields of the object may be changed: no controller owns it, and no field manager other than
// us, kubectl and those of `choice` owns `fields`, names from the object's root on (spec, rules).
// Returns its version. `title` is what messages call it. kFailedPrecondition.
Result<std::string> CheckWritable(const JsonReader& object, const std::string& title,
                                  const ObjectChoice& choice,
                                  const std::vector<std::string>& fields);

class WeightedObjectEnactor : public SplitEnactor {
 public:
  // `title`: "httproute shop/web"; `path` of the object. REQUIRES: `client` outlives this.
  WeightedObjectEnactor(kube::ApiClient* client, std::string title, std::string path,
                        int64_t weight_sum);

  Result<StandingWeights> Read() override;
  int64_t weight_sum() const override { return weight_sum_; }
  std::string Request(const std::vector<int64_t>& weights) const override;
  Result<void> Send(const std::vector<int64_t>& weights) override;

 protected:
  // Of the object as the API server has it.
  virtual Result<WeightedObject> Parse(std::string_view json) const = 0;
  virtual std::string Target() const { return title_; }
  const std::string& title() const { return title_; }

 private:
  std::string Patch(const std::vector<int64_t>& weights) const;
  Result<void> LookAtHealth(const WeightField& field, StandingBackend* standing);

  kube::ApiClient* client_;
  std::string title_, path_;
  int64_t weight_sum_;
  WeightedObject read_;
};

}  // namespace rudderfish
