// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "model/load_laws.h"

// The pods of one workload under load: how many calls are at them, and how long who comes now
// waits. Pods that became ready together have the same calls; they are one cohort.
//
// The calls at a pod follow the pointwise stationary fluid flow: dL/dt = lambda - C rho(L), where
// rho(L) is the utilisation at which L calls are there in equilibrium (W.-P. Wang, D. Tipper, S.
// Banerjee, "A simple approximation for modeling nonstationary queues", INFOCOM 1996). It is exact
// in equilibrium, and a fluid in overload; backlog carries over by itself. The variance follows the
// linear noise about it: dV/dt = 2 C rho'(L) (V_stationary(L) - V). Where calls share the slots of
// their pod it is the work that flows so, as no discipline changes it, and calls follow.
//
// A plain value: copied as memory. Times in s.

namespace rudderfish {

class PodCrew {
 public:
  void Start(const CrewLaw& law, int replicas);

  // New pods are ready at `now_s` plus their delay, later if they pull their image; of those there
  // are the youngest go. Gives the time that those which go take to serve who is in their line,
  // summed over pods.
  double SetReplicas(const CrewLaw& law, int replicas, double now_s);
  int ready() const { return ready_; }
  int replicas() const { return replicas_; }
  double present() const;

  // The next time at which pods become ready; infinite if none start. Then they are, with Join.
  double next_ready_s() const { return next_ready_s_; }
  void Join(double now_s);

  // So many calls come from now on. Gives whether one step of so long follows what happens closely:
  // calls are near their equilibrium, or will soon be.
  bool Aim(const CrewLaw& law, double calls_per_s, double seconds);
  // Time passes, as aimed. kShort: in parts, as what happens may be anything.
  enum class Pace { kShort, kLong };
  void Pass(const CrewLaw& law, double seconds, Pace pace);

  // Of the last Pass.
  double calls_per_s() const { return calls_per_s_; }
  double busy() const { return busy_; }      // Slots, of all pods.
  double passes() const { return passes_; }  // Calls that leave over those that come.
  double refused_share() const { return refused_share_; }
  // Of a call of mean service: in line; or, where calls share, how much longer it takes than alone.
  double wait_s() const { return wait_s_; }
  double wait_variance_s2() const { return wait_variance_s2_; }

 private:
  static constexpr int kMostCohorts = 8;    // The two youngest are taken together where there are
  static constexpr int kMostStarting = 16;  // more.

  struct Cohort {
    int pods = 0;
    int near = 0;                      // An interval of the table of equilibria.
    double present = 0, variance = 0;  // Calls at one pod.
    double work = 0;  // Where calls share: of how many calls, in equilibrium, there is work left.
  };
  struct Starting {
    int pods = 0, pulls = 0;  // Those that pull their image.
    double ready_s = 0;
  };
  struct Equilibrium {  // To which the calls at one pod go.
    PodEquilibria::Place place;
    PodPoint point;
    double present_per_s = 0, variance_per_s = 0;  // How fast, near it.
  };
  struct Way;
  struct Sums;  // Over cohorts.

  bool IsQuick(const CrewLaw& law, const Cohort& cohort, double seconds) const;
  bool IsThere(const CrewLaw& law, const Cohort& cohort) const;  // In equilibrium.
  void Settle(const CrewLaw& law);
  Way Relax(const CrewLaw& law, double seconds, Cohort* cohort) const;
  void CountWay(const CrewLaw& law, const Way& way, Cohort* cohort, Sums* sums) const;
  void Creep(const CrewLaw& law, double seconds, Cohort* cohort, Sums* sums) const;
  void CreepShared(const CrewLaw& law, double seconds, Cohort* cohort, Sums* sums) const;
  void AddWait(const CrewLaw& law, const Cohort& cohort, double present, double variance,
               const PodEquilibria::Place& place, const PodPoint& point, Sums* sums) const;
  void TakeTogether();
  void MakePods(int pods, int pulls, double ready_s);
  int StopStarting(int surplus);
  void CountPods();

  // First what every step reads.
  const PodEquilibria* equilibria_ = nullptr;  // Of so many pods.
  int cohort_count_ = 0, starting_count_ = 0;
  int ready_ = 0, replicas_ = 0;
  bool changed_ = true;   // Pods, since Aim.
  bool settled_ = false;  // All calls are in equilibrium, and what the last Pass gave holds.
  double calls_per_s_ = 0;
  double load_ = 0;  // Of one pod.
  Equilibrium aim_;

  double busy_ = 0, passes_ = 1, refused_share_ = 0;
  double wait_s_ = 0, wait_variance_s2_ = 0;  // Of who comes now.
  double next_ready_s_ = 0;
  int images_ = 0;  // Nodes that hold the image, or are to.

  std::array<Cohort, kMostCohorts> cohorts_;
  std::array<Starting, kMostStarting> starting_;
};

}  // namespace rudderfish
