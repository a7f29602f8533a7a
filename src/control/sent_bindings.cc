// SPDX-License-Identifier: Apache-2.0
#include "control/sent_bindings.h"

#include <utility>

namespace rudderfish {

void SentBindings::Begin(const std::string& key, SentBinding binding) {
  Erase(key);
  ++CountOf(binding.stage);
  bindings_.emplace(key, std::move(binding));
}

SentBinding* SentBindings::Find(const std::string& key) {
  const auto at = bindings_.find(key);
  return at == bindings_.end() ? nullptr : &at->second;
}

void SentBindings::Enter(SentBinding* binding, BindingStage stage, Instant due) {
  --CountOf(binding->stage);
  ++CountOf(stage);
  binding->stage = stage;
  binding->due = due;
}

void SentBindings::Erase(const std::string& key) {
  const auto at = bindings_.find(key);
  if (at == bindings_.end()) return;
  --CountOf(at->second.stage);
  bindings_.erase(at);
}

std::vector<std::string> SentBindings::Due(Instant now) const {
  std::vector<std::string> due;
  for (const auto& [key, binding] : bindings_) {
    const bool is_awaited =
        binding.stage == BindingStage::kSent || binding.stage == BindingStage::kAsked;
    if (!is_awaited && binding.due <= now) due.push_back(key);
  }
  return due;
}

}  // namespace rudderfish
