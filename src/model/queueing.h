// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

// Queues in equilibrium: what theory says of one station with `servers` equal servers, customers
// that arrive at random (Poisson) and are served in order. The model of an application under load
// is built of these, and the event simulator is checked against them.
//
// Rates are per second, times in seconds, counts are means over time. scv is the squared
// coefficient of variation: variance / mean^2; 0 for constant times, 1 for exponential ones.
// Kleinrock: L. Kleinrock, "Queueing Systems", vol. 1, 1975. Harchol-Balter: M. Harchol-Balter,
// "Performance Modeling and Design of Computer Systems", 2013. Everything here is a pure function.

namespace rudderfish {

struct Station {
  double arrivals_per_s = 0;
  double services_per_s = 1;  // Of one busy server: 1 / mean service time.
  int servers = 1;

  double offered_load() const { return arrivals_per_s / services_per_s; }  // In Erlang.
  double utilisation() const { return offered_load() / servers; }
};

// A time that is 0 with a probability and otherwise exponential: what waiting in a queue is,
// exactly (M/M/c) or nearly.
struct Wait {
  double probability = 0;      // Of having to wait at all.
  double mean_if_waiting = 0;  // In s.

  double mean_s() const { return probability * mean_if_waiting; }
  double variance_s2() const;
  double QuantileS(double share) const;  // The least t with P(wait <= t) >= share.
};

// Wait and response (waiting plus service) of those who are served.
struct QueueLaw {
  Wait wait;
  double service_mean_s = 0;
  double service_variance_s2 = 0;

  double response_mean_s() const { return wait.mean_s() + service_mean_s; }
  double response_variance_s2() const { return wait.variance_s2() + service_variance_s2; }
};

inline constexpr double kUnboundedWaitS = std::numeric_limits<double>::infinity();

// Probability that a customer finds all servers busy and is turned away, in M/G/c/c, whatever the
// law of service. B(0) = 1, B(k) = aB(k-1) / (k + aB(k-1)) (Kleinrock §3.6). O(servers).
double ErlangB(int servers, double offered_load);

// Probability that a customer has to wait in M/M/c: C = B / (1 - rho(1 - B)) (Harchol-Balter
// §14.3). 1 from rho = 1 on.
double ErlangC(int servers, double offered_load);

// M/M/c: the wait is exponential at rate c mu - lambda, with probability C (Harchol-Balter §14.5).
// Infinite from rho = 1 on.
QueueLaw MmcQueue(const Station& station);

// P(response > t) of M/M/c, exactly: wait and service are independent.
double MmcResponseTail(const Station& station, double t_s);
double MmcResponseQuantileS(const Station& station, double share);

// G/G/c: mean wait of M/M/c times (ca^2 + cs^2) / 2 (Allen and Cunneen: A. O. Allen, "Probability,
// Statistics and Queueing Theory", 1978, chapter 5); exact for M/M/c and M/G/1. Who waits at all:
// Erlang C.
QueueLaw AllenCunneenQueue(const Station& station, double arrivals_scv, double service_scv);

// M/G/1: W = lambda E[S^2] / (2(1 - rho)) (Pollaczek and Khinchine; Kleinrock §5.6). The mean is
// exact; that waits are exponential is an approximation, which is exact in heavy traffic.
QueueLaw PollaczekKhinchineQueue(const Station& station, double service_scv);

// M/D/1: P(wait > t), exactly (A. K. Erlang, 1909; Harchol-Balter §23). REQUIRES: one server.
double Md1WaitTail(const Station& station, double t_s);
double Md1WaitQuantileS(const Station& station, double share);

// One server shared equally by all its customers (processor sharing), any law of service: the mean
// response is S / (1 - rho) (Kleinrock vol. 2 §4.4). With several servers and exponential service
// each customer gets at most one: as many are there as in M/M/c.
double ProcessorSharingResponseS(const Station& station);

// Of M/M/1 processor sharing: (2 + rho) / (mu^2 (1-rho)^2 (2-rho)) (E. G. Coffman, R. R. Muntz, H.
// Trotter, "Waiting time distributions for processor-sharing systems", JACM 1970).
double ProcessorSharingVarianceS2(const Station& station);

// Several servers shared equally, each customer having at most one, any law of service: how much
// longer a customer stays than alone. A customer whose service takes x stays x times the stretch in
// the mean, exactly (J. W. Cohen, "The multiple phase service network with generalized processor
// sharing", Acta Informatica 1979): as many are there as in M/M/c. 1 + C / (c(1 - rho)).
double SharingStretch(const Station& station);

// Variance of what the stretch has above 1, over its squared mean, averaged over customers by the
// square of their service times: Var[T] = stretch^2 Var[x] + (stretch - 1)^2 E[x^2] times this.
// `waits`: with what probability all servers are busy. Who needs little service meets one number of
// customers, geometric from `servers` on, ((1 + rho) / waits - 1); the more service, the more the
// numbers met even out. With one server that is the integral of (x - u) P(wait > u) (T. J. Ott,
// "The sojourn-time distribution in the M/G/1 queue with processor sharing", J. Appl. Prob. 1984),
// the wait of M/G/1 taken as exponential and service as gamma distributed: exact for M/M/1. With
// several, its mean is chosen to be right where traffic is light and where it is heavy.
double SharingVariation(double utilisation, int servers, double waits, double stretch,
                        double service_scv);

// Percentile of its response, taken as gamma distributed with that mean and variance: the 95th is
// 6 % too high at rho = 0.6.
double ProcessorSharingQuantileS(const Station& station, double share);

// M/M/c/K: at most `places` customers in all, served ones included; others are turned away.
// Birth-death equations (Kleinrock §3.4). Never unstable. O(places).
class FiniteQueue {
 public:
  // REQUIRES: servers <= places <= 10'000'000.
  FiniteQueue(const Station& station, int places);

  double blocking() const { return blocking_; }
  double accepted_per_s() const { return station_.arrivals_per_s * (1 - blocking_); }
  double mean_in_system() const { return in_system_; }
  double mean_response_s() const;  // Of those who are let in (Little's law).
  double mean_wait_s() const;

  // P(wait > t), P(response > t) of those who are let in. O(places).
  double WaitTail(double t_s) const { return Tail(t_s, 0); }
  double ResponseTail(double t_s) const { return Tail(t_s, 1); }
  double WaitQuantileS(double share) const { return Quantile(share, 0); }
  double ResponseQuantileS(double share) const { return Quantile(share, 1); }

 private:
  double Probability(int count) const;  // Of so many in the system.
  double Tail(double t_s, int services) const;
  double Quantile(double share, int services) const;

  Station station_;
  int places_;
  double blocking_ = 0, in_system_ = 0;
  double log_empty_ = 0;  // Of P(no customer), which may be less than a double holds.
};

// Mean response over mean service time where each customer joins the shortest of `choices` queues
// of very many, drawn at random, each with one exponential server: sum of
// rho^((d^i - d) / (d - 1)) (N. Vvedenskaya, R. Dobrushin, F. Karpelevich, 1996; M. Mitzenmacher,
// thesis, 1996). REQUIRES: 0 <= utilisation < 1, choices >= 1.
double ShortestOfChoicesResponse(double utilisation, int choices);

}  // namespace rudderfish
