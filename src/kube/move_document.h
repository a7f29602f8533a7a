// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/application.h"
#include "cluster/pod_move.h"
#include "cluster/scheduling_observer.h"
#include "kube/api_client.h"
#include "kube/fields.h"

// Parts of kube/move_api.h: how objects are asked for and read, and what is seen of a move.

namespace rudderfish::kube::internal {

// One answer of the API server, parsed; what is read of it is valid as long as it lives.
class Document {
 public:
  static Result<Document> Parse(const std::string& body, std::string_view what) {
    Document made;
    if (made.parser_->parse(body.data(), body.size()).get(made.root_) != simdjson::SUCCESS)
      return Fail(ErrorCode::kCorruption, "{}: the answer is not JSON", what);
    return made;
  }

  Fields fields() const { return Fields(root_); }
  const Element& root() const { return root_; }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_ = std::make_unique<simdjson::dom::parser>();
  Element root_;
};

// Nothing: it is not there.
Result<std::optional<std::string>> GetObject(ApiClient* client, const std::string& path);

std::string PodPath(const PodIdentity& pod);
std::string PinPath();  // Of the ConfigMap of moves.

// The value of an annotation; empty: it has none.
Result<std::string> AnnotationOf(const Element& object, std::string_view key);

// With `more` in the place of labels of the same keys.
Labels WithLabels(Labels labels, const Labels& more);

Result<MovedPod> ReadMovedPod(const Element& object);

// As MoveApi::Look, without pins. The uid of the ReplicaSet of which there may be one; nothing:
// there is none.
Result<std::optional<std::string>> ReadMoveView(ApiClient* client, const PodIdentity& pod,
                                                const std::optional<PodMove>& move,
                                                const std::string& target, MoveView* view);

}  // namespace rudderfish::kube::internal
