// SPDX-License-Identifier: Apache-2.0
#include "model/pod_crew.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rudderfish {
namespace {

constexpr double kNeverS = std::numeric_limits<double>::infinity();
constexpr double kFull = PodEquilibria::kFull;

// Closer than this to their equilibrium calls are in it; nearer than that one exponential says all.
constexpr double kSettledShare = 1e-3, kNearShare = 0.05;
// So many times its time constant a step may be to bring about the equilibrium by itself, if it
// leaves that much of the way as an error.
constexpr double kQuickSteps = 6, kQuickShare = 0.1;
constexpr double kLeastCalls = 0.01;  // What is small beside this many calls is nothing.

// The share of the way that an exponential has gone after so many time constants.
double GoneAfter(double steps) {
  constexpr double kAll = 40;  // Beyond it no double is nearer to 1 than 1.
  return steps > kAll ? 1 : -std::expm1(-steps);
}

}  // namespace

struct PodCrew::Sums {
  double wait_s = 0, wait_square_s2 = 0;
  double busy = 0;
  double refused = 0;
  double grown = 0;  // Calls that stayed.
};

// Of a cohort that relaxes: before, on average, and at the end.
struct PodCrew::Way {
  double before, mean, variance, after;
};

void PodCrew::Start(const CrewLaw& law, int replicas) {
  *this = PodCrew();
  next_ready_s_ = kNeverS;
  if (!law.scaled) return;
  if (replicas > 0) cohorts_[cohort_count_++] = {.pods = replicas};
  images_ = std::min(replicas, law.image_nodes);
  CountPods();
}

void PodCrew::CountPods() {
  ready_ = 0;
  for (int i = 0; i < cohort_count_; ++i) ready_ += cohorts_[i].pods;
  replicas_ = ready_;
  next_ready_s_ = kNeverS;
  for (int i = 0; i < starting_count_; ++i) {
    replicas_ += starting_[i].pods;
    next_ready_s_ = std::min(next_ready_s_, starting_[i].ready_s);
  }
  changed_ = true;
  settled_ = false;
}

double PodCrew::present() const {
  double calls = 0;
  for (int i = 0; i < cohort_count_; ++i) calls += cohorts_[i].pods * cohorts_[i].present;
  return calls;
}

double PodCrew::SetReplicas(const CrewLaw& law, int replicas, double now_s) {
  if (replicas == replicas_) return 0;
  double draining_s = 0;
  int surplus = replicas_ - replicas;
  if (surplus < 0) {
    // One after the other: on nodes that have the image, on nodes that lack it, beside others.
    const int made = -surplus;
    const int found = std::clamp(images_ - replicas_, 0, made);
    const int pulls = std::min(PullsOf(replicas, images_, law.image_nodes), made - found);
    images_ += pulls;
    const double ready_s = now_s + law.start_delay_s;
    MakePods(found, 0, ready_s);
    MakePods(pulls, pulls, ready_s + law.pull_s);
    MakePods(made - found - pulls, 0, ready_s);
  } else {
    surplus = StopStarting(surplus);
  }
  while (surplus > 0 && cohort_count_ > 0) {
    Cohort& last = cohorts_[cohort_count_ - 1];
    const int gone = std::min(last.pods, surplus);
    draining_s +=
        gone * (law.shared ? last.work : last.present) * law.service_s / law.slots / law.turnover;
    last.pods -= gone;
    surplus -= gone;
    if (last.pods == 0) --cohort_count_;
  }
  CountPods();
  return draining_s;
}

void PodCrew::MakePods(int pods, int pulls, double ready_s) {
  if (pods == 0) return;
  if (starting_count_ == kMostStarting) {
    Starting& last = starting_[kMostStarting - 2];
    const Starting& gone = starting_[--starting_count_];
    last.ready_s = (last.pods * last.ready_s + gone.pods * gone.ready_s) / (last.pods + gone.pods);
    last.pods += gone.pods;
    last.pulls += gone.pulls;
  }
  starting_[starting_count_++] = {.pods = pods, .pulls = pulls, .ready_s = ready_s};
}

// Gives how many are still too many. What those who go were pulling does not come to be there.
int PodCrew::StopStarting(int surplus) {
  while (surplus > 0 && starting_count_ > 0) {
    Starting& last = starting_[starting_count_ - 1];
    const int gone = std::min(last.pods, surplus), unpulled = std::min(last.pulls, gone);
    last.pods -= gone;
    last.pulls -= unpulled;
    images_ -= unpulled;
    surplus -= gone;
    if (last.pods == 0) --starting_count_;
  }
  return surplus;
}

void PodCrew::Join(double now_s) {
  int kept = 0;
  for (int i = 0; i < starting_count_; ++i) {
    if (starting_[i].ready_s > now_s) {
      starting_[kept++] = starting_[i];
      continue;
    }
    if (cohort_count_ == kMostCohorts) TakeTogether();
    cohorts_[cohort_count_++] = {.pods = starting_[i].pods};
  }
  starting_count_ = kept;
  CountPods();
}

void PodCrew::TakeTogether() {
  Cohort& one = cohorts_[cohort_count_ - 2];
  const Cohort& other = cohorts_[--cohort_count_];
  const double share = static_cast<double>(other.pods) / (one.pods + other.pods);
  const double apart = other.present - one.present;
  one.present += share * apart;
  one.variance += share * (other.variance - one.variance);
  one.work += share * (other.work - one.work);
  one.pods += other.pods;
}

bool PodCrew::Aim(const CrewLaw& law, double calls_per_s, double seconds) {
  if (!law.scaled || law.service_s <= 0) {
    calls_per_s_ = calls_per_s;
    settled_ = true;
    return true;
  }
  if (changed_ || calls_per_s != calls_per_s_) {
    if (changed_ && ready_ > 0) equilibria_ = &law.EquilibriaOf(ready_);
    calls_per_s_ = calls_per_s;
    changed_ = false;
    settled_ = false;
    if (ready_ == 0) return true;
    const double capacity = law.capacity_per_s;
    load_ = calls_per_s / ready_ / capacity;
    if (load_ < kFull) {
      aim_.place = equilibria_->AtUtilisation(load_, aim_.place.interval);
      aim_.point = equilibria_->At(aim_.place);
      const double slope = equilibria_->UtilisationPerCall(aim_.place);
      aim_.present_per_s = capacity * slope * law.turnover;
      aim_.variance_per_s = 2 * capacity * slope * law.turnover;
    }
  }
  if (settled_ || ready_ == 0) return true;
  for (int i = 0; i < cohort_count_; ++i) {
    if (!IsQuick(law, cohorts_[i], seconds)) return false;
  }
  return true;
}

bool PodCrew::IsQuick(const CrewLaw& law, const Cohort& cohort, double seconds) const {
  if (load_ >= kFull || aim_.point.present > law.most_present) return false;
  const double calls = law.shared ? cohort.work : cohort.present;
  const double gap = calls - aim_.point.present;
  const double scale = aim_.point.present + kLeastCalls;
  if (std::abs(gap) <= kNearShare * scale) return true;
  const PodEquilibria::Place place = equilibria_->AtPresent(calls, cohort.near);
  if (place.beyond()) return false;
  // From above the chord is slower than the end, from below the end.
  const double chord =
      law.turnover * law.capacity_per_s * (equilibria_->At(place).utilisation - load_) / gap;
  const double steps = std::min(chord, aim_.present_per_s) * seconds;
  return steps >= kQuickSteps && std::abs(gap) <= kQuickShare * steps * (scale + law.slots / 2);
}

void PodCrew::Pass(const CrewLaw& law, double seconds, Pace pace) {
  if (settled_) return;
  busy_ = wait_s_ = wait_variance_s2_ = 0;
  passes_ = 1;
  if (ready_ == 0) {
    refused_share_ = 1;
    return;
  }
  Sums sums;
  std::array<Way, kMostCohorts> ways;
  int counted = 0;  // In `sums`. The others are needed only if not all settle.
  settled_ = load_ < kFull && aim_.point.present <= law.most_present;
  for (int i = 0; i < cohort_count_; ++i) {
    Cohort& cohort = cohorts_[i];
    if (pace == Pace::kLong || IsQuick(law, cohort, seconds)) {
      ways[i] = Relax(law, seconds, &cohort);
    } else {
      for (; counted < i; ++counted) CountWay(law, ways[counted], &cohorts_[counted], &sums);
      law.shared ? CreepShared(law, seconds, &cohort, &sums) : Creep(law, seconds, &cohort, &sums);
      counted = i + 1;
    }
    const bool there = IsThere(law, cohort);
    if (settled_ && there) {
      cohort.present = cohort.work = aim_.point.present;
      cohort.variance = aim_.point.variance;
      cohort.near = aim_.place.interval;
    }
    settled_ = settled_ && there;
    if (settled_) continue;
    for (; counted <= i; ++counted) CountWay(law, ways[counted], &cohorts_[counted], &sums);
  }
  if (settled_) return Settle(law);
  busy_ = sums.busy;
  wait_s_ = sums.wait_s;
  wait_variance_s2_ = std::max(0.0, sums.wait_square_s2 - sums.wait_s * sums.wait_s);
  refused_share_ = sums.refused;
  if (pace == Pace::kShort && calls_per_s_ > 0)
    passes_ = std::clamp(1 - sums.grown / (calls_per_s_ * seconds), 0.0, law.passes_most);
}

bool PodCrew::IsThere(const CrewLaw& law, const Cohort& cohort) const {
  const PodPoint& end = aim_.point;
  const double near = kSettledShare * (end.present + kLeastCalls);
  return std::abs(cohort.present - end.present) <= near &&
         std::abs(cohort.variance - end.variance) <=
             10 * kSettledShare * (end.variance + kLeastCalls) &&
         (!law.shared || std::abs(cohort.work - end.present) <= near);
}

// One cohort is as good as many, and what is there from now on holds until something changes.
void PodCrew::Settle(const CrewLaw& law) {
  cohorts_[0].pods = ready_;
  cohort_count_ = 1;
  Sums sums;
  AddWait(law, cohorts_[0], aim_.point.present, aim_.point.variance, aim_.place, aim_.point, &sums);
  wait_s_ = sums.wait_s;
  wait_variance_s2_ = std::max(0.0, sums.wait_square_s2 - sums.wait_s * sums.wait_s);
  busy_ = load_ * law.slots * ready_;
  refused_share_ = 0;
}

// All the way by one exponential.
PodCrew::Way PodCrew::Relax(const CrewLaw& law, double seconds, Cohort* cohort) const {
  const double gap = cohort->present - aim_.point.present;
  Way way;
  way.before = cohort->present;
  way.mean = aim_.point.present;
  if (gap != 0) {
    double rate = aim_.present_per_s;
    if (std::abs(gap) > kNearShare * (aim_.point.present + kLeastCalls)) {
      const auto place = equilibria_->AtPresent(way.before, cohort->near);
      rate = law.turnover * law.capacity_per_s * (equilibria_->At(place).utilisation - load_) / gap;
    }
    const double steps = std::max(rate * seconds, 1e-9);
    const double gone = GoneAfter(steps);
    cohort->present = aim_.point.present + gap * (1 - gone);
    way.mean += gap * gone / steps;
  }
  cohort->work = cohort->present;
  way.after = cohort->present;
  const double variance_gap = cohort->variance - aim_.point.variance;
  const double steps = std::max(aim_.variance_per_s * seconds, 1e-9);
  const double gone = GoneAfter(steps);
  cohort->variance = aim_.point.variance + variance_gap * (1 - gone);
  way.variance = aim_.point.variance + variance_gap * gone / steps;
  return way;
}

void PodCrew::CountWay(const CrewLaw& law, const Way& way, Cohort* cohort, Sums* sums) const {
  const PodEquilibria::Place place = equilibria_->AtPresent(way.mean, aim_.place.interval);
  cohort->near = place.interval;
  const PodPoint point = equilibria_->At(place);
  AddWait(law, *cohort, way.mean, way.variance, place, point, sums);
  sums->busy += cohort->pods * law.slots * point.utilisation;
  sums->grown += cohort->pods * (way.after - way.before);
}

// In parts, each as fast as it begins.
void PodCrew::Creep(const CrewLaw& law, double seconds, Cohort* cohort, Sums* sums) const {
  constexpr int kParts = 4;
  const double capacity = law.capacity_per_s;
  const double arrivals = calls_per_s_ / ready_;
  const double before = cohort->present;
  const double dt = seconds / kParts;
  double busy = 0;
  for (int part = 0; part < kParts; ++part) {
    const PodEquilibria::Place place = equilibria_->AtPresent(cohort->present, cohort->near);
    cohort->near = place.interval;
    const PodPoint point = equilibria_->At(place);
    // Where more comes than can be served, in a full line there is always somebody to serve.
    const bool is_busy = place.beyond() || (load_ >= kFull && cohort->present >= law.most_present);
    const double use = is_busy ? 1 : point.utilisation;
    busy += use / kParts;
    const double gap = cohort->present - aim_.point.present;
    if (load_ < kFull && std::abs(gap) > 1e-9) {
      const double rate = std::max(1e-9, capacity * (use - load_) / gap);
      cohort->present = aim_.point.present + gap * std::exp(-rate * dt);
    } else if (load_ >= kFull) {
      cohort->present = std::max(0.0, cohort->present + (arrivals - capacity * use) * dt);
    }
    // Beyond the table calls only add up: the noise of arrivals and services.
    const double slope = equilibria_->UtilisationPerCall(place);
    cohort->variance += place.beyond() ? (arrivals + capacity * law.service_scv) * dt
                                       : (point.variance - cohort->variance) *
                                             -std::expm1(-2 * capacity * slope * dt);
  }
  const bool is_full = cohort->present > law.most_present;
  if (is_full) {
    cohort->present = law.most_present;
    sums->refused += cohort->pods * std::max(0.0, 1 - 1 / std::max(load_, 1e-9)) / ready_;
  }
  const double present = (before + cohort->present) / 2;
  const auto place = is_full && load_ >= kFull ? PodEquilibria::Place{PodEquilibria::kIntervals}
                                               : equilibria_->AtPresent(present, cohort->near);
  AddWait(law, *cohort, present, cohort->variance, place, equilibria_->At(place), sums);
  sums->busy += cohort->pods * law.slots * busy;
  sums->grown += cohort->pods * (cohort->present - before);
}

// Work as calls in Creep; how many calls that are follows. What a burst brings has been begun less
// than what was there, and for a while few of it leave. Who leaves while one mean service is done:
// 4 - 3 w / l, where there are l calls and work of as many as w in equilibrium. That is right to
// first order about equilibrium, for gamma distributed service, of the rate at which calls add up
// in overload: the root of a = lambda (1 - E[exp(-a x / slots)]), x a service (A. Jean-Marie, P.
// Robert, "On the transient behavior of the processor sharing queue", Queueing Systems 1994).
void PodCrew::CreepShared(const CrewLaw& law, double seconds, Cohort* cohort, Sums* sums) const {
  constexpr int kParts = 4;
  const double capacity = law.capacity_per_s;
  const double arrivals = calls_per_s_ / ready_;
  const double before = cohort->present;
  const double dt = seconds / kParts;
  double busy = 0, seen = 0;
  for (int part = 0; part < kParts; ++part) {
    const double work = cohort->work, present = cohort->present;
    PodEquilibria::Place place = equilibria_->AtPresent(work, cohort->near);
    const bool is_full = load_ >= kFull && present >= law.most_present;
    const double use = place.beyond() || is_full ? 1 : equilibria_->At(place).utilisation;
    const double gap = work - aim_.point.present;
    if (load_ < kFull && std::abs(gap) > 1e-9) {
      const double rate = std::max(1e-9, law.turnover * capacity * (use - load_) / gap);
      cohort->work = aim_.point.present + gap * std::exp(-rate * dt);
    } else if (load_ >= kFull) {
      cohort->work = std::max(0.0, work + law.turnover * (arrivals - capacity * use) * dt);
    }
    const PodPoint point = equilibria_->At(place);
    const double slope = equilibria_->UtilisationPerCall(place);
    cohort->variance +=
        place.beyond() ? law.turnover * law.turnover * (arrivals + capacity * law.service_scv) * dt
                       : (point.variance - cohort->variance) *
                             -std::expm1(-2 * law.turnover * capacity * slope * dt);
    place = equilibria_->AtPresent(cohort->work, place.interval);
    cohort->near = place.interval;
    const double used = place.beyond() || is_full ? 1 : equilibria_->At(place).utilisation;
    busy += (use + used) / 2 / kParts;
    // The end of the part decides, as far as calls go: however short their stay, that is stable.
    const double served = capacity * used * dt, come = arrivals * dt;
    const double less = present + come - 4 * served;
    const double calls = (less + std::sqrt(less * less + 12 * served * cohort->work)) / 2;
    cohort->present = std::min(calls, present + come);
    // Who comes while calls add up meets more and more of them, by Little's law so many.
    const double grows = come > served ? 1 - served / come : 0;
    const double middle = (present + cohort->present) / 2;
    seen += (middle + grows * ((work + cohort->work) / 2 - middle)) / kParts;
  }
  const bool is_full = cohort->present > law.most_present;
  if (is_full) {
    cohort->work *= law.most_present / cohort->present;
    cohort->present = law.most_present;
    seen = std::min(seen, law.most_present);
    sums->refused += cohort->pods * std::max(0.0, 1 - 1 / std::max(load_, 1e-9)) / ready_;
  }
  const auto place = is_full && load_ >= kFull ? PodEquilibria::Place{PodEquilibria::kIntervals}
                                               : equilibria_->AtPresent(seen, cohort->near);
  AddWait(law, *cohort, seen, cohort->variance, place, equilibria_->At(place), sums);
  sums->busy += cohort->pods * law.slots * busy;
  sums->grown += cohort->pods * (cohort->present - before);
}

// Who comes where so many are waits, by Little's law; or stays longer, which is the same law.
void PodCrew::AddWait(const CrewLaw& law, const Cohort& cohort, double present, double variance,
                      const PodEquilibria::Place& place, const PodPoint& point, Sums* sums) const {
  const double capacity = law.capacity_per_s;
  const double use = place.beyond() ? 1 : std::max(point.utilisation, 1e-9);
  const double wait = std::max(0.0, present / (capacity * use) - law.service_s);
  const double still = std::max(point.variance, 1e-12);
  const double spread = place.beyond()
                            ? variance / (capacity * capacity)
                            : wait * wait * (2 / point.waits - 1) * std::min(variance / still, 2.0);
  const double share = static_cast<double>(cohort.pods) / ready_;
  sums->wait_s += share * wait;
  sums->wait_square_s2 += share * (wait * wait + spread);
}

}  // namespace rudderfish
