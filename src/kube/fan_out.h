// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kube/left_out.h"
#include "kube/object_sink.h"

// Tells several sinks what one list and watch says, so that a resource is watched once however many
// read it. Each sink is told everything: an object that one of them refuses is left out for that
// one, logged and counted, and the others have it. Only what all refuse is an error: it may have
// been damaged on its way, which a new list shows (kube/reflector.h).

namespace rudderfish::kube {

class FanOut final : public ObjectSink {
 public:
  explicit FanOut(std::string path) : path_(std::move(path)) {}

  // `owner`: whose sink it is. REQUIRES: no list has begun; `sink` outlives the last call.
  void Add(const void* owner, ObjectSink* sink);

  // What the owner's sink has refused. REQUIRES: it was added.
  const LeftOut::Objects& left_out(const void* owner) const;

  // How often an object was told that some sink refused.
  int64_t refused() const { return refused_; }

  void BeginList() override;
  Result<void> Listed(const simdjson::dom::element& object) override;
  void EndList() override;
  Result<void> Changed(const simdjson::dom::element& object) override;
  Result<void> Deleted(const simdjson::dom::element& object) override;

 private:
  struct Branch {
    const void* owner;
    ObjectSink* sink;
    LeftOut left_out;
  };

  Result<void> Tell(const simdjson::dom::element& object,
                    Result<void> (ObjectSink::*how)(const simdjson::dom::element&));

  std::string path_;
  std::vector<Branch> branches_;
  int64_t refused_ = 0;
};

}  // namespace rudderfish::kube
