// SPDX-License-Identifier: Apache-2.0
#include "model/queueing.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "model/gamma_law.h"

namespace rudderfish {
namespace {

struct ErlangRow {
  int servers;
  double arrivals, waits, wait_s, response_s, in_queue, p95_s, p99_s;
};

// Erlang's formulas at mu = 1, by a calculation in exact fractions and long decimals beside the
// product.
constexpr ErlangRow kErlangRows[] = {
    {1, .5, .500000, 1.000000, 2.000000, .500000, 4.6052, 7.8240},
    {1, .8, .800000, 4.000000, 5.000000, 3.200000, 13.8629, 21.9101},
    {1, .95, .950000, 19.000000, 20.000000, 18.050000, 58.8888, 91.0775},
    {2, 1.6, .711111, 1.777778, 2.777778, 2.844444, 6.6370, 10.6606},
    {4, 3.2, .596432, .745541, 1.745541, 2.385730, 3.0987, 5.1105},
    {8, 6.4, .457645, .286028, 1.286028, 1.830580, 1.3838, 2.3897},
    {16, 14.4, .591343, .369590, 1.369590, 5.322091, 1.5440, 2.5499},
    {32, 28.8, .458197, .143186, 1.143186, 4.123770, .6923, 1.1952},
    {100, 90, .216940, .021694, 1.021694, 1.952464, .1468, .3077}};

TEST(Queueing, ErlangsFormulasGiveTheirTable) {
  for (const ErlangRow& row : kErlangRows) {
    const QueueLaw law = MmcQueue({row.arrivals, 1, row.servers});
    EXPECT_NEAR(law.wait.probability, row.waits, 5e-7) << row.servers;
    EXPECT_NEAR(law.wait.mean_s(), row.wait_s, 5e-7) << row.servers;
    EXPECT_NEAR(law.response_mean_s(), row.response_s, 5e-7) << row.servers;
    EXPECT_NEAR(law.wait.mean_s() * row.arrivals, row.in_queue, 5e-6) << row.servers;
    EXPECT_NEAR(law.wait.QuantileS(.95), row.p95_s, 6e-5) << row.servers;
    EXPECT_NEAR(law.wait.QuantileS(.99), row.p99_s, 6e-5) << row.servers;
  }
  EXPECT_NEAR(ErlangC(110, 100), .2370, 5e-5);
}

TEST(Queueing, FiniteQueuesGiveTheirTable) {
  const FiniteQueue two({1.6, 1, 2}, 5);
  EXPECT_NEAR(two.blocking(), .102744, 5e-7);
  EXPECT_NEAR(two.mean_in_system(), 2.161240, 5e-7);
  EXPECT_NEAR(two.mean_response_s(), 1.505451, 5e-7);
  const FiniteQueue one({.9, 1, 1}, 10);
  EXPECT_NEAR(one.blocking(), .050814, 5e-7);
  EXPECT_NEAR(one.mean_in_system(), 3.969441, 5e-7);
  EXPECT_NEAR(one.mean_response_s(), 4.646601, 5e-7);
}

TEST(Queueing, GeneralServiceTimesGiveTheirTable) {
  EXPECT_NEAR(PollaczekKhinchineQueue({.8, 1, 1}, 0).wait.mean_s(), 2.0, 1e-12);
  EXPECT_NEAR(PollaczekKhinchineQueue({.8, 1, 1}, 4).wait.mean_s(), 10.0, 1e-12);
  EXPECT_NEAR(AllenCunneenQueue({3.2, 1, 4}, 1, .5).wait.mean_s(), .745541 * .75, 5e-7);
}

TEST(Queueing, ShortestOfChoicesGivesItsTable) {
  constexpr double kRows[][4] = {{.5, 2.0, 1.2657, 1.1252},
                                 {.8, 5.0, 1.9474, 1.5809},
                                 {.9, 10.0, 2.6141, 2.0279},
                                 {.95, 20.0, 3.3830, 2.5351},
                                 {.99, 100.0, 5.4320, 3.8578}};
  for (const auto& row : kRows) {
    for (int d = 1; d <= 3; ++d)
      EXPECT_NEAR(ShortestOfChoicesResponse(row[0], d), row[d], 6e-5) << row[0] << " " << d;
  }
}

// In M/M/1 the response is exponential at rate mu - lambda.
TEST(Queueing, ResponseOfOneServerIsExponential) {
  const Station station{.7, 1, 1};
  for (double share : {.5, .95, .99})
    EXPECT_NEAR(MmcResponseQuantileS(station, share), -std::log(1 - share) / .3, 1e-7);
  // Where wait and service have the same rate the formula has a gap, which must not be seen.
  const Station equal{1, 1, 2};
  EXPECT_NEAR(MmcResponseTail(equal, 2), MmcResponseTail({1 + 1e-7, 1, 2}, 2), 1e-6);
}

TEST(Queueing, WaitOfConstantServiceHasNoSeamWhereTheFormulaChanges) {
  for (double rho : {.3, .6, .8, .95}) {
    const Station station{rho, 1, 1};
    const double seam = std::min(12 / rho, 8.0);
    const double before = Md1WaitTail(station, seam * (1 - 1e-9));
    EXPECT_NEAR(Md1WaitTail(station, seam * (1 + 1e-9)) / before, 1, 1e-4) << rho;
  }
}

// Mean wait is the integral of its tail.
TEST(Queueing, TailsIntegrateToTheirMeans) {
  const auto integral = [](const auto& tail, double end) {
    double sum = 0;
    const int steps = 40'000;
    for (int i = 0; i < steps; ++i) sum += tail((i + .5) * end / steps) * end / steps;
    return sum;
  };
  const Station one{.8, 1, 1};
  EXPECT_NEAR(integral([&](double t) { return Md1WaitTail(one, t); }, 60), 2.0, 1e-3);
  const Station four{3.2, 1, 4};
  EXPECT_NEAR(integral([&](double t) { return MmcResponseTail(four, t); }, 60), 1.745541, 1e-4);
  for (const Station& station : {Station{1.6, 1, 2}, Station{.9, 1, 1}, Station{9, 1, 5}}) {
    const FiniteQueue queue(station, 10);
    const double wait = integral([&](double t) { return queue.WaitTail(t); }, 60);
    EXPECT_NEAR(wait, queue.mean_wait_s(), 1e-3) << station.servers;
    const double response = integral([&](double t) { return queue.ResponseTail(t); }, 60);
    EXPECT_NEAR(response, queue.mean_response_s(), 1e-3) << station.servers;
    EXPECT_NEAR(queue.ResponseTail(queue.ResponseQuantileS(.95)), .05, 1e-8);
  }
}

TEST(Queueing, ManyPlacesAreAsGoodAsNoLimit) {
  const Station station{3.2, 1, 4};
  for (const int places : {400, 10'000}) {  // With 10,000, blocking is less than a double holds.
    const FiniteQueue queue(station, places);
    EXPECT_LT(queue.blocking(), 1e-30);
    EXPECT_NEAR(queue.mean_response_s(), MmcQueue(station).response_mean_s(), 1e-9);
    EXPECT_NEAR(queue.WaitQuantileS(.95), MmcQueue(station).wait.QuantileS(.95), 1e-6);
    EXPECT_NEAR(queue.ResponseQuantileS(.99), MmcResponseQuantileS(station, .99), 1e-6);
  }
}

// One place to wait in: its customer waits for one departure of 1000 servers, and is then served.
TEST(Queueing, OnePlaceBehindAThousandServersHasItsExactTail) {
  constexpr int kServers = 1000;
  const double rate = 1, load = kServers;
  const FiniteQueue queue({load, rate, kServers}, kServers + 1);
  // P(all busy, none waits) is P(one waits), since as many come as leave; and that is `blocking`.
  const double waits = queue.blocking() / (1 - queue.blocking());
  for (const double t : {.5, 2., 4.}) {
    const double departs = kServers * rate;
    const double both =
        (departs * std::exp(-rate * t) - rate * std::exp(-departs * t)) / (departs - rate);
    EXPECT_NEAR(queue.ResponseTail(t) / ((1 - waits) * std::exp(-rate * t) + waits * both), 1, 1e-9)
        << t;
    EXPECT_NEAR(queue.WaitTail(t), waits * std::exp(-departs * t), 1e-12) << t;
  }
}

TEST(Queueing, OverloadIsInfiniteOrTurnedAway) {
  EXPECT_EQ(MmcQueue({2, 1, 2}).wait.mean_s(), kUnboundedWaitS);
  EXPECT_EQ(MmcResponseQuantileS({3, 1, 2}, .95), kUnboundedWaitS);
  EXPECT_EQ(Md1WaitQuantileS({1, 1, 1}, .5), kUnboundedWaitS);
  EXPECT_NEAR(FiniteQueue({1000, 1, 10}, 50).accepted_per_s(), 10, 1e-9);
}

// M/M/1 processor sharing, simulated here in the simplest way: time runs at 1 / n.
TEST(Queueing, SharedProcessorsAnswerAsTheirFormulaSays) {
  const Station station{.6, 1, 1};
  Rng rng(5);
  std::vector<double> left, came, answers;
  double now = 0, next = 0;
  for (int served = 0; served < 400'000;) {
    double soonest = 1e300;
    size_t who = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] < soonest) soonest = left[i], who = i;
    }
    const double share = static_cast<double>(left.size());
    const double finish = left.empty() ? 1e300 : now + soonest * share;
    const double step = std::min(finish, next) - now;
    for (double& work : left) work -= step / share;
    now += step;
    if (finish <= next) {
      answers.push_back(now - came[who]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(who));
      came.erase(came.begin() + static_cast<std::ptrdiff_t>(who));
      ++served;
    } else {
      left.push_back(-std::log1p(-rng.Uniform()));
      came.push_back(now);
      next = now - std::log1p(-rng.Uniform()) / .6;
    }
  }
  double sum = 0, squares = 0;
  for (double t : answers) sum += t, squares += t * t;
  const double mean = sum / static_cast<double>(answers.size());
  EXPECT_NEAR(mean / ProcessorSharingResponseS(station), 1, .02);
  EXPECT_NEAR((squares / static_cast<double>(answers.size()) - mean * mean) /
                  ProcessorSharingVarianceS2(station),
              1, .08);
  std::nth_element(answers.begin(), answers.begin() + 380'000, answers.end());
  EXPECT_NEAR(ProcessorSharingQuantileS(station, .95) / answers[380'000], 1, .08);
}

TEST(Queueing, SharingStretchesByHowManyAreThere) {
  EXPECT_DOUBLE_EQ(SharingStretch({0, 1, 3}), 1);
  EXPECT_DOUBLE_EQ(SharingStretch({.75, 1, 1}), 4);
  EXPECT_EQ(SharingStretch({2, 1, 2}), kUnboundedWaitS);
  for (const int servers : {1, 2, 8}) {
    const Station station{.8 * 5 * servers, 5, servers};
    EXPECT_NEAR(SharingStretch(station), 5 * ProcessorSharingResponseS(station), 1e-12);
    EXPECT_NEAR(SharingStretch(station),
                FiniteQueue(station, 400).mean_in_system() / (.8 * servers), 1e-9);
  }
}

TEST(Queueing, SharingVariesAsTheoryOfOneServerSays) {
  for (const double rho : {.1, .6, .95}) {
    const double stretch = 1 / (1 - rho), more = stretch - 1;
    EXPECT_NEAR(stretch * stretch + more * more * 2 * SharingVariation(rho, 1, rho, stretch, 1),
                ProcessorSharingVarianceS2({rho, 1, 1}), 1e-9);
    // Ott's integral of (x - u) P(wait > u), over gamma distributed x.
    for (const double scv : {0.0, .4, 3.0}) {
      const double wait = (1 + scv) / 2 / (1 - rho);
      double integral = 0;
      constexpr double kStep = 5e-4;
      for (double x = kStep / 2; x < (scv == 0 ? 1 : 60); x += kStep) {
        const double longer = scv == 0 ? 1 : 1 - GammaLaw{1, scv}.Below(x);
        integral += longer * wait * -std::expm1(-x / wait) * kStep;
      }
      EXPECT_NEAR(more * more * (1 + scv) * SharingVariation(rho, 1, rho, stretch, scv) /
                      (stretch * stretch * 2 * rho * integral),
                  1, 1e-3)
          << rho << " " << scv;
    }
  }
}

RC_GTEST_PROP(Queueing, MoreServersOrLessLoadNeverWaitLonger, ()) {
  const int servers = *rc::gen::inRange(1, 60);
  const double rho = *rc::gen::inRange(1, 99) / 100.0;
  const double scv = *rc::gen::inRange(0, 50) / 10.0;
  const Station station{rho * servers, 1, servers};
  const double wait = AllenCunneenQueue(station, 1, scv).wait.mean_s();
  RC_ASSERT(AllenCunneenQueue({station.arrivals_per_s, 1, servers + 1}, 1, scv).wait.mean_s() <=
            wait);
  RC_ASSERT(AllenCunneenQueue({station.arrivals_per_s * .9, 1, servers}, 1, scv).wait.mean_s() <=
            wait);
  // Unit of time: everything twice as fast halves all times.
  const double twice =
      AllenCunneenQueue({2 * station.arrivals_per_s, 2, servers}, 1, scv).wait.mean_s();
  RC_ASSERT(std::abs(2 * twice - wait) <= 1e-9 * (wait + 1));
  RC_ASSERT(ErlangC(servers, rho * servers) >= ErlangB(servers, rho * servers));
}

// Everything ten times as fast: times are a tenth, what is counted is the same.
TEST(Queueing, TimesHaveTheirUnit) {
  for (const Station& slow : {Station{.7, 1, 1}, Station{2.4, 1, 3}, Station{3, 1, 4}}) {
    const Station fast{10 * slow.arrivals_per_s, 10, slow.servers};
    EXPECT_DOUBLE_EQ(fast.offered_load(), slow.offered_load());
    EXPECT_DOUBLE_EQ(fast.utilisation(), slow.utilisation());
    const QueueLaw a = AllenCunneenQueue(slow, .5, 2), b = AllenCunneenQueue(fast, .5, 2);
    EXPECT_DOUBLE_EQ(b.wait.probability, a.wait.probability);
    EXPECT_NEAR(b.wait.mean_if_waiting, a.wait.mean_if_waiting / 10, 1e-12);
    EXPECT_NEAR(b.response_mean_s(), a.response_mean_s() / 10, 1e-12);
    EXPECT_NEAR(b.response_variance_s2(), a.response_variance_s2() / 100, 1e-12);
    EXPECT_NEAR(b.service_variance_s2, 2 * .1 * .1, 1e-15);
    EXPECT_NEAR(MmcResponseTail(fast, .3), MmcResponseTail(slow, 3), 1e-12);
    EXPECT_NEAR(MmcResponseQuantileS(fast, .9), MmcResponseQuantileS(slow, .9) / 10, 1e-9);
    const FiniteQueue few(slow, 6), few_fast(fast, 6);
    EXPECT_NEAR(few_fast.blocking(), few.blocking(), 1e-12);
    EXPECT_NEAR(few_fast.accepted_per_s(), 10 * few.accepted_per_s(), 1e-9);
    EXPECT_NEAR(few_fast.mean_in_system(), few.mean_in_system(), 1e-12);
    EXPECT_NEAR(few_fast.mean_response_s(), few.mean_response_s() / 10, 1e-12);
    EXPECT_NEAR(few_fast.mean_wait_s(), few.mean_wait_s() / 10, 1e-12);
    for (const double t : {0., .2, 1., 4.}) {
      EXPECT_NEAR(few_fast.WaitTail(t / 10), few.WaitTail(t), 1e-12) << t;
      EXPECT_NEAR(few_fast.ResponseTail(t / 10), few.ResponseTail(t), 1e-12) << t;
    }
    EXPECT_NEAR(few_fast.ResponseQuantileS(.95), few.ResponseQuantileS(.95) / 10, 1e-9);
    EXPECT_NEAR(ProcessorSharingResponseS(fast), ProcessorSharingResponseS(slow) / 10, 1e-12);
  }
  const Station slow{.7, 1, 1}, fast{7, 10, 1};
  for (const double t : {0., .5, 1., 2.5, 7.9, 8.1, 30.})
    EXPECT_NEAR(Md1WaitTail(fast, t / 10), Md1WaitTail(slow, t), 1e-12) << t;
  EXPECT_NEAR(Md1WaitQuantileS(fast, .99), Md1WaitQuantileS(slow, .99) / 10, 1e-9);
  EXPECT_NEAR(ProcessorSharingVarianceS2(fast), ProcessorSharingVarianceS2(slow) / 100, 1e-12);
  EXPECT_NEAR(ProcessorSharingQuantileS(fast, .9), ProcessorSharingQuantileS(slow, .9) / 10, 1e-9);
}

// With constant service of 1, who comes when work of w is left waits for w. P(W <= t) for t < 1 is
// (1 - rho) e^(rho t); for 1 <= t < 2, (1 - rho)(e^(rho t) - rho (t - 1) e^(rho (t - 1))).
TEST(Queueing, WaitOfConstantServiceIsErlangs) {
  for (const double rho : {.2, .7, .9}) {
    const Station station{rho, 1, 1};
    EXPECT_EQ(Md1WaitTail(station, -1e-9), 1);
    for (const double t : {0., .3, .99})
      EXPECT_NEAR(Md1WaitTail(station, t), 1 - (1 - rho) * std::exp(rho * t), 1e-12) << t;
    for (const double t : {1., 1.5, 1.99}) {
      const double below =
          (1 - rho) * (std::exp(rho * t) - rho * (t - 1) * std::exp(rho * (t - 1)));
      EXPECT_NEAR(Md1WaitTail(station, t), 1 - below, 1e-12) << t;
    }
    EXPECT_EQ(Md1WaitQuantileS(station, (1 - rho) * .99), 0);
    const double quantile = Md1WaitQuantileS(station, .97);
    EXPECT_NEAR(Md1WaitTail(station, quantile), .03, 1e-9);
  }
  EXPECT_EQ(Md1WaitTail({0, 1, 1}, 0), 0);
  EXPECT_EQ(Md1WaitTail({0, 1, 1}, 1), 0);
  EXPECT_EQ(Md1WaitTail({1, 1, 1}, 100), 1);
}

// Far out, a wait is exponential: log P(W > t) falls by theta a second, where lambda (e^theta - 1)
// = theta.
TEST(Queueing, WaitOfConstantServiceHasAnExponentialTail) {
  for (const double rho : {.3, .8}) {
    const Station station{rho, 1, 1};
    const double theta = std::log(Md1WaitTail(station, 20) / Md1WaitTail(station, 21));
    EXPECT_NEAR(rho * std::expm1(theta) / theta, 1, 1e-9) << rho;
    EXPECT_NEAR(Md1WaitTail(station, 20) * std::exp(20 * theta),
                (1 - rho) / (rho * std::exp(theta) - 1), 1e-9);
  }
}

TEST(Queueing, WaitsAreNoneOrExponential) {
  const Wait wait{.25, 4};
  EXPECT_DOUBLE_EQ(wait.mean_s(), 1);
  EXPECT_DOUBLE_EQ(wait.variance_s2(), .25 * 2 * 16 - 1);
  EXPECT_EQ(wait.QuantileS(.75), 0);
  EXPECT_EQ(wait.QuantileS(.1), 0);
  EXPECT_NEAR(wait.QuantileS(.875), 4 * std::log(2), 1e-12);
  const QueueLaw idle = AllenCunneenQueue({0, 4, 2}, 1, .5);
  EXPECT_EQ(idle.wait.probability, 0);
  EXPECT_EQ(idle.wait.mean_if_waiting, 0);
  EXPECT_DOUBLE_EQ(idle.response_mean_s(), .25);
  EXPECT_DOUBLE_EQ(idle.response_variance_s2(), .5 / 16);
}

TEST(Queueing, ErlangsFormulasAtTheirEdges) {
  EXPECT_EQ(ErlangB(0, 3), 1);
  EXPECT_EQ(ErlangB(2, 0), 0);
  EXPECT_DOUBLE_EQ(ErlangB(1, 3), .75);
  EXPECT_DOUBLE_EQ(ErlangB(2, 1), .2);  // 1/2 / (1 + 1 + 1/2).
  EXPECT_DOUBLE_EQ(ErlangC(1, .4), .4);
  EXPECT_EQ(ErlangC(2, 2), 1);
  EXPECT_EQ(ErlangC(2, 5), 1);
  EXPECT_LT(ErlangC(2, 1.999), 1);
}

// M/M/2: wait with probability C at rate 2 - a, then service at rate 1.
TEST(Queueing, ResponseOfTwoServersIsWaitThenService) {
  const double a = 1.3, waits = ErlangC(2, a), spare = 2 - a;
  for (const double t : {.1, 1., 5.}) {
    const double both = (std::exp(-spare * t) - spare * std::exp(-t)) / (1 - spare);
    EXPECT_NEAR(MmcResponseTail({a, 1, 2}, t), (1 - waits) * std::exp(-t) + waits * both, 1e-12);
  }
  EXPECT_EQ(MmcResponseTail({a, 1, 2}, 0), 1);
  EXPECT_EQ(MmcResponseTail({a, 1, 2}, -1), 1);
  EXPECT_EQ(MmcResponseTail({2, 1, 2}, 1), 1);
  EXPECT_EQ(MmcResponseTail({3, 1, 2}, 1), 1);
  EXPECT_EQ(MmcResponseQuantileS({2, 1, 2}, .5), kUnboundedWaitS);
  // Two equal exponentials one after another: (1 + t) e^-t.
  const double equal = ErlangC(2, 1);
  EXPECT_NEAR(MmcResponseTail({1, 1, 2}, 2), (1 - equal) * std::exp(-2) + equal * 3 * std::exp(-2),
              1e-12);
}

// Two servers, three places, a = 1: weights 1, 1, 1/2, 1/4 of 11/4.
TEST(Queueing, FiniteQueuesAreCountedByHand) {
  const FiniteQueue queue({1, 1, 2}, 3);
  EXPECT_NEAR(queue.blocking(), 1 / 11., 1e-15);
  EXPECT_NEAR(queue.mean_in_system(), (1 + 1 + .75) / 2.75, 1e-15);
  EXPECT_NEAR(queue.accepted_per_s(), 10 / 11., 1e-15);
  EXPECT_NEAR(queue.mean_response_s(), 1 / (10 / 11.), 1e-12);
  EXPECT_NEAR(queue.mean_wait_s(), .1, 1e-12);
  // One in five of those let in finds both busy, and waits for a departure at rate 2.
  for (const double t : {0., .4, 2.}) {
    EXPECT_NEAR(queue.WaitTail(t), .2 * std::exp(-2 * t), 1e-12);
    const double both = 2 * std::exp(-t) - std::exp(-2 * t);
    EXPECT_NEAR(queue.ResponseTail(t), .8 * std::exp(-t) + .2 * both, 1e-12);
  }
  EXPECT_EQ(queue.WaitTail(-1), 1);
  EXPECT_EQ(queue.ResponseTail(-1), 1);
  EXPECT_EQ(queue.WaitQuantileS(.7), 0);
  EXPECT_NEAR(queue.WaitQuantileS(.9), std::log(2) / 2, 1e-9);
  const FiniteQueue unused({0, 5, 2}, 3);
  EXPECT_EQ(unused.blocking(), 0);
  EXPECT_DOUBLE_EQ(unused.mean_response_s(), .2);
  EXPECT_EQ(unused.mean_wait_s(), 0);
}

}  // namespace
}  // namespace rudderfish
