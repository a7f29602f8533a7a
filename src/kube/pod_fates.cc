// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_fates.h"

#include <string_view>
#include <utility>

#include "kube/object_reader.h"

namespace rudderfish::kube {
namespace {

// A phase that is no text is for who reads the pod to refuse.
std::string_view PhaseOf(const Element& object) {
  return Fields(object).Text("status.phase").value_or("");
}

bool HasEnded(const Element& object) {
  const std::string_view phase = PhaseOf(object);
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

void PodFates::BeginList() {
  listed_.clear();
  live_->BeginList();
}

void PodFates::EndList() {
  failed_ = std::exchange(listed_, {});
  live_->EndList();
}

Result<void> PodFates::Listed(const Element& object) {
  return HasEnded(object) ? NoteEnded(object, &listed_) : live_->Listed(object);
}

Result<void> PodFates::Changed(const Element& object) {
  if (!HasEnded(object)) return live_->Changed(object);
  TRY(NoteEnded(object, &failed_));
  return live_->Deleted(object);
}

Result<void> PodFates::Deleted(const Element& object) {
  if (const Result<ObjectKey> key = ReadKey(object)) failed_.erase(*key);
  return live_->Deleted(object);
}

Result<void> PodFates::NoteEnded(const Element& object, Failed* failed) {
  if (PhaseOf(object) != "Failed") return {};
  const Fields fields(object);
  TRY_ASSIGN(Metadata meta, internal::ReadMetadata(fields));
  TRY_ASSIGN(const std::string_view reason, fields.Text("status.reason"));
  const auto known = failed_.find(meta.key);
  const bool is_told = known != failed_.end() && known->second == meta.uid;
  if (!is_told)
    on_failed_({meta.key.object_namespace, meta.key.name, meta.uid}, std::string(reason));
  failed->insert_or_assign(std::move(meta.key), std::move(meta.uid));
  return {};
}

}  // namespace rudderfish::kube
