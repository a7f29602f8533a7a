// SPDX-License-Identifier: Apache-2.0
#include "kube/fan_out.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rudderfish::kube {

void FanOut::Add(const void* owner, ObjectSink* sink) {
  branches_.push_back({owner, sink, LeftOut(path_)});
}

const LeftOut::Objects& FanOut::left_out(const void* owner) const {
  const auto at = std::find_if(branches_.begin(), branches_.end(),
                               [&](const Branch& branch) { return branch.owner == owner; });
  CHECK(at != branches_.end());
  return at->left_out.objects();
}

void FanOut::BeginList() {
  for (Branch& branch : branches_) {
    branch.left_out.BeginList();
    branch.sink->BeginList();
  }
}

void FanOut::EndList() {
  for (const Branch& branch : branches_) branch.sink->EndList();
}

Result<void> FanOut::Listed(const simdjson::dom::element& object) {
  return Tell(object, &ObjectSink::Listed);
}

Result<void> FanOut::Changed(const simdjson::dom::element& object) {
  return Tell(object, &ObjectSink::Changed);
}

Result<void> FanOut::Deleted(const simdjson::dom::element& object) {
  return Tell(object, &ObjectSink::Deleted);
}

Result<void> FanOut::Tell(const simdjson::dom::element& object,
                          Result<void> (ObjectSink::*how)(const simdjson::dom::element&)) {
  size_t refusals = 0;
  Result<void> refused;
  for (Branch& branch : branches_) {
    Result<void> told = (branch.sink->*how)(object);
    if (told) {
      branch.left_out.NoteSound(object);
      continue;
    }
    ++refusals;
    branch.left_out.Note(object, told.error().message);
    branch.left_out.Log(told.error().message);
    if (refused) refused = std::move(told);
  }
  if (refusals > 0) ++refused_;
  return refusals == branches_.size() ? refused : Result<void>();
}

}  // namespace rudderfish::kube
