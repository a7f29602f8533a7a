// SPDX-License-Identifier: Apache-2.0
#include "model/queueing.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/gamma_law.h"

namespace rudderfish {
namespace {

constexpr int kMostPlaces = 10'000'000;

// The least t >= 0 with tail(t) <= 1 - share, by bisection, to 1e-10 of its size. `scale` is a
// time of the order of the answer.
template <class Tail>
double QuantileOf(const Tail& tail, double share, double scale) {
  CHECK(share >= 0 && share < 1);
  const double left = 1 - share;
  if (tail(0.0) <= left) return 0;
  double low = 0, high = scale;
  while (tail(high) > left) {
    low = high;
    high *= 2;
  }
  for (int i = 0; i < 200 && high - low > 1e-10 * high; ++i) {
    const double middle = (low + high) / 2;
    (tail(middle) > left ? low : high) = middle;
  }
  return (low + high) / 2;
}

QueueLaw Exponential(const Station& station, double wait_probability, double mean_wait_s,
                     double service_scv) {
  const double service_s = 1 / station.services_per_s;
  QueueLaw law{.service_mean_s = service_s,
               .service_variance_s2 = service_scv * service_s * service_s};
  law.wait.probability = wait_probability;
  law.wait.mean_if_waiting = wait_probability > 0 ? mean_wait_s / wait_probability : 0;
  return law;
}

}  // namespace

double Wait::variance_s2() const {
  const double mean = mean_s();
  return 2 * probability * mean_if_waiting * mean_if_waiting - mean * mean;
}

double Wait::QuantileS(double share) const {
  CHECK(share >= 0 && share < 1);
  const double left = 1 - share;
  if (probability <= left) return 0;
  return mean_if_waiting * std::log(probability / left);
}

double ErlangB(int servers, double offered_load) {
  CHECK(servers >= 0 && offered_load >= 0);
  double blocking = 1;
  for (int k = 1; k <= servers; ++k)
    blocking = offered_load * blocking / (k + offered_load * blocking);
  return blocking;
}

double ErlangC(int servers, double offered_load) {
  CHECK_GE(servers, 1);
  const double rho = offered_load / servers;
  if (rho >= 1) return 1;
  const double blocking = ErlangB(servers, offered_load);
  return blocking / (1 - rho * (1 - blocking));
}

QueueLaw MmcQueue(const Station& station) { return AllenCunneenQueue(station, 1, 1); }

double MmcResponseTail(const Station& station, double t_s) {
  if (t_s <= 0) return 1;
  const double mu = station.services_per_s;
  const double spare = station.servers * mu - station.arrivals_per_s;
  if (spare <= 0) return 1;
  const double waits = ErlangC(station.servers, station.offered_load());
  const double served = std::exp(-mu * t_s), waited = std::exp(-spare * t_s);
  // Wait (rate `spare`) and service (rate mu) one after the other; the limit where both are equal.
  const double gap = spare - mu;
  const double both =
      std::abs(gap) < 1e-9 * mu ? (1 + mu * t_s) * served : (spare * served - mu * waited) / gap;
  return (1 - waits) * served + waits * both;
}

double MmcResponseQuantileS(const Station& station, double share) {
  if (station.utilisation() >= 1) return kUnboundedWaitS;
  return QuantileOf([&](double t_s) { return MmcResponseTail(station, t_s); }, share,
                    1 / station.services_per_s);
}

QueueLaw AllenCunneenQueue(const Station& station, double arrivals_scv, double service_scv) {
  CHECK(station.arrivals_per_s >= 0 && station.services_per_s > 0);
  const double spare = station.servers * station.services_per_s - station.arrivals_per_s;
  const double waits = ErlangC(station.servers, station.offered_load());
  const double mean_s =
      spare <= 0 ? kUnboundedWaitS : waits / spare * (arrivals_scv + service_scv) / 2;
  return Exponential(station, waits, mean_s, service_scv);
}

QueueLaw PollaczekKhinchineQueue(const Station& station, double service_scv) {
  CHECK_EQ(station.servers, 1);
  return AllenCunneenQueue(station, 1, service_scv);
}

double Md1WaitTail(const Station& station, double t_s) {
  CHECK_EQ(station.servers, 1);
  const double service_s = 1 / station.services_per_s, rate = station.arrivals_per_s;
  const double rho = rate * service_s;
  if (rho >= 1) return 1;
  if (rho <= 0 || t_s < 0) return t_s < 0 ? 1 : 0;
  // The exact sum cancels to nothing where it is long; the tail is exponential long before.
  constexpr double kLongestSum = 12, kMostServices = 8;
  if (rate * t_s <= kLongestSum && t_s <= kMostServices * service_s) {
    long double below = 0;
    const int last = static_cast<int>(t_s / service_s);
    for (int k = 0; k <= last; ++k) {
      const long double x = static_cast<long double>(rate) * (k * service_s - t_s);
      below += std::exp(-x) * std::pow(x, static_cast<long double>(k)) / std::tgamma(k + 1.0L);
    }
    return std::clamp(static_cast<double>(1 - (1 - rho) * below), 0.0, 1.0);
  }
  // Cramer and Lundberg: (1 - rho) / (lambda D e^(theta D) - 1) e^(-theta t), where theta is the
  // positive root of lambda(e^(theta D) - 1) = theta.
  double low = 1e-12 / service_s, high = 1 / service_s;
  const auto excess = [&](double theta) { return rate * std::expm1(theta * service_s) - theta; };
  while (excess(high) < 0) high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (excess(middle) < 0 ? low : high) = middle;
  }
  const double theta = (low + high) / 2;
  return (1 - rho) / (rho * std::exp(theta * service_s) - 1) * std::exp(-theta * t_s);
}

double Md1WaitQuantileS(const Station& station, double share) {
  if (station.utilisation() >= 1) return kUnboundedWaitS;
  return QuantileOf([&](double t_s) { return Md1WaitTail(station, t_s); }, share,
                    1 / station.services_per_s);
}

double ProcessorSharingResponseS(const Station& station) {
  return MmcQueue(station).response_mean_s();
}

double ProcessorSharingVarianceS2(const Station& station) {
  CHECK_EQ(station.servers, 1);
  const double rho = station.utilisation();
  if (rho >= 1) return kUnboundedWaitS;
  const double spare = station.services_per_s * (1 - rho);
  return (2 + rho) / (spare * spare * (2 - rho));
}

double SharingStretch(const Station& station) {
  const double spare = station.servers * (1 - station.utilisation());
  if (spare <= 0) return kUnboundedWaitS;
  return 1 + ErlangC(station.servers, station.offered_load()) / spare;
}

double SharingVariation(double utilisation, int servers, double waits, double stretch,
                        double service_scv) {
  CHECK(utilisation < 1 && waits > 0);
  // In units of the mean service time: how much service it takes until others are met.
  const double spare = 1 - utilisation;
  const double other = (1 + service_scv) / 2 / (servers * spare * spare * stretch);
  const double none =  // Laplace's transform of the service time, there.
      service_scv > 0 ? std::pow(1 + service_scv / other, -1 / service_scv) : std::exp(-1 / other);
  const double same = 2 * (other - other * other * (1 - none)) / (1 + service_scv);
  return ((1 + utilisation) / waits - 1) * same;
}

double ProcessorSharingQuantileS(const Station& station, double share) {
  return GammaLaw{ProcessorSharingResponseS(station), ProcessorSharingVarianceS2(station)}.Quantile(
      share);
}

FiniteQueue::FiniteQueue(const Station& station, int places) : station_(station), places_(places) {
  CHECK(station.servers >= 1 && station.servers <= places && places <= kMostPlaces);
  CHECK(station.services_per_s > 0 && station.arrivals_per_s >= 0);
  // Relative to the largest so far, so that nothing overflows.
  const double load = station.offered_load();
  double weight = 1, sum = 1, count = 0, log_empty = 0;
  for (int n = 1; n <= places; ++n) {
    weight *= load / std::min(n, station.servers);
    sum += weight;
    count += n * weight;
    if (weight > 1e100) {
      sum /= weight, count /= weight, log_empty -= std::log(weight);
      weight = 1;
    }
  }
  blocking_ = weight / sum;
  in_system_ = count / sum;
  log_empty_ = log_empty - std::log(sum);
}

double FiniteQueue::Probability(int count) const {
  if (count == 0) return std::exp(log_empty_);
  const int computing = std::min(count, station_.servers);
  const double log_load = std::log(station_.offered_load());
  return std::exp(log_empty_ + computing * log_load - LogGamma(computing + 1.0) +
                  (count - computing) * (log_load - std::log(station_.servers)));
}

double FiniteQueue::mean_response_s() const {
  const double rate = accepted_per_s();
  return rate > 0 ? in_system_ / rate : 1 / station_.services_per_s;
}

double FiniteQueue::mean_wait_s() const { return mean_response_s() - 1 / station_.services_per_s; }

// Who finds n >= c others waits for n - c + 1 = k departures at rate c mu each. With uniformisation
// at that rate, k departures and then one service take longer than t with probability
// sum_{i<k} P(i) + sum_{i>=k} P(i) r^(i-k), P Poisson of mean c mu t, r = 1 - 1/c: a departure
// is that of a given customer in service with probability 1/c.
double FiniteQueue::Tail(double t_s, int services) const {
  if (t_s < 0) return 1;
  const double departures = station_.servers * station_.services_per_s * t_s;
  const double stays = services == 0 ? 0 : 1 - 1.0 / station_.servers;
  const int longest = places_ - station_.servers;  // Departures that anybody waits for.
  const int last = static_cast<int>(longest + departures + 12 * std::sqrt(departures + 1) + 40);
  const auto poisson = [&](int i) {
    if (departures <= 0) return i == 0 ? 1.0 : 0.0;
    return std::exp(i * std::log(departures) - departures - LogGamma(i + 1.0));
  };
  // beyond = sum_{i>=k} P(i) r^(i-k), backwards from where P has nothing left; short, the rest.
  double beyond = 0;
  for (int i = last; i > longest; --i) beyond = poisson(i) + stays * beyond;
  double below = 0;
  for (int i = 0; i <= longest; ++i) below += poisson(i);
  // From the longest wait to the shortest: `below` loses its last summand, `beyond` gains it.
  double waited = 0, waits = 0;
  for (int k = longest; k >= 1; --k) {
    const double finds = Probability(k + station_.servers - 1);  // So many others.
    below -= poisson(k);
    beyond = services == 0 ? 0 : poisson(k) + stays * beyond;
    waited += finds * (std::max(0.0, below) + beyond);
    waits += finds;
  }
  const double at_once = services == 0 ? 0 : 1 - blocking_ - waits;
  const double tail = std::max(0.0, at_once) * std::exp(-station_.services_per_s * t_s) + waited;
  return std::min(1.0, tail / (1 - blocking_));
}

double FiniteQueue::Quantile(double share, int services) const {
  return QuantileOf([&](double t_s) { return Tail(t_s, services); }, share,
                    1 / station_.services_per_s);
}

double ShortestOfChoicesResponse(double utilisation, int choices) {
  CHECK(utilisation >= 0 && utilisation < 1 && choices >= 1);
  if (choices == 1) return 1 / (1 - utilisation);
  double sum = 0, power = choices;  // d^i
  for (;;) {
    const double term = std::pow(utilisation, (power - choices) / (choices - 1));
    sum += term;
    if (term < 1e-15) return sum;
    power *= choices;
  }
}

}  // namespace rudderfish
