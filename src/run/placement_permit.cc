// SPDX-License-Identifier: Apache-2.0
#include "run/placement_permit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "control/own_choice.h"

namespace rudderfish {

Mode PlacementPermit::Effective() const { return host_->switches.Effective(Configured()); }

// The ConfigMap counts, too: who does not know yet that it has been killed decides nothing.
std::optional<Instant> PlacementPermit::FreshAsOf() const {
  const std::optional<Instant> seen = link_->feed->FreshAsOf(*seen_);
  if (host_->control == nullptr || !seen) return seen;
  const std::optional<Instant> told = host_->control->reflector().FreshAsOf();
  return told ? std::min(*seen, *told) : told;
}

bool PlacementPermit::IsFresh() const {
  const std::optional<Instant> fresh = FreshAsOf();
  return fresh && host_->clock->Now() - *fresh <= host_->config.staleness;
}

std::string PlacementPermit::Trouble() const {
  const kube::ConfigMapWatch* control = host_->control.get();
  const bool is_controls = control != nullptr && control->reflector().last_error();
  if (!is_controls) return link_->feed->Trouble(*seen_);
  return fmt::format("the ConfigMap of `control`: {}", control->reflector().last_error()->message);
}

std::string PlacementPermit::WhyNotFresh() const {
  if (IsFresh()) return "";
  return host_->control != nullptr && !host_->control->reflector().FreshAsOf()
             ? "the ConfigMap of `control` has not been read"
             : "what is seen of the cluster is too old";
}

std::string PlacementPermit::WhyNotPlacing() const {
  if (!Serves()) {
    const std::string why = host_->switches.Why(Configured());
    return fmt::format("placement is in {}{}", ModeName(Effective()),
                       why.empty() ? "" : ", " + why);
  }
  return host_->Leads() ? WhyNotFresh() : "another instance leads, or none yet";
}

std::string PlacementPermit::Unseen() const {
  if (IsFresh()) return "";
  const std::optional<Instant> fresh = FreshAsOf();
  std::string why =
      fresh ? fmt::format("what is known is {:.0f} s old", Seconds(host_->clock->Now() - *fresh))
            : "not listed yet";
  if (const std::string trouble = Trouble(); !trouble.empty()) why += ": " + trouble;
  return why;
}

// An extender alone grades from its start; with `placement` it has the mode of that.
std::string PlacementPermit::WhyExtenderIsHeld() const {
  const Mode configured = ladder_ == nullptr ? Mode::kEnforce : Configured();
  const Mode mode = host_->switches.Effective(configured);
  if (mode < Mode::kCanary) {
    std::string why = host_->switches.Why(configured);
    return why.empty() ? fmt::format("placement is in {}", ModeName(mode)) : why;
  }
  return WhyNotFresh();
}

std::string PlacementPermit::WhyExtenderIsHeldFor(const PodIdentity& pod) const {
  std::string why = WhyExtenderIsHeld();
  if (!why.empty() || ladder_ == nullptr || Effective() != Mode::kCanary) return why;
  return IsInShare(pod.uid, CanaryShare()) ? "" : "the pod is not of the canary's share";
}

// A scheduler that has begun to serve goes on in lower modes, by kube-default: the pods that name
// us have no other scheduler.
bool PlacementPermit::Serves() const {
  const Mode mode = Effective();
  return mode >= Mode::kCanary || (mode != Mode::kOff && ladder_->serves());
}

// Asked again right before a Binding goes out, however long it has waited.
bool PlacementPermit::MayAct() const {
  return !is_ending_ && Serves() && IsFresh() && host_->Leads();
}

// None while nothing can be written: it could do worse unseen, so that kube-default places.
double PlacementPermit::CanaryShare() const {
  return host_->journal_health->trouble().empty() ? canary_ : 0;
}

bool PlacementPermit::LeavesUnserved() const {
  const bool another_leads = !host_->Leads() && !host_->lease->holder().empty();
  return ladder_ != nullptr && !another_leads && !MayAct();
}

bool PlacementPermit::LeavesByMode() const {
  const bool is_held_back = !host_->switches.Why(Configured()).empty();
  return ladder_ != nullptr && !is_held_back && host_->Leads() && !Serves();
}

}  // namespace rudderfish
