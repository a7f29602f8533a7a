// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "control/application_run.h"
#include "kube/cluster_feed.h"
#include "kube/dump.h"
#include "kube/kube_cluster.h"
#include "kube/kubeconfig.h"
#include "policy/registry.h"
#include "scenario/application_file.h"
#include "task/migration.h"
#include "tests/live/shop.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/polling.h"
#include "tests/support/testbed.h"

// The controller in shadow while its API server, the network before it and its clock misbehave, and
// the cluster changes all the time. It reads as a ServiceAccount that may list and watch and
// nothing else, through a proxy that passes bytes on as long as no fault is on. After each fault it
// is right again within 5 s of the fault's end: a turn succeeds on a state known since then, and
// the mirror equals a fresh list. Meanwhile it decides nothing on a state older than the limit,
// by its own word and by when the fault began.
//
// $RUDDERFISH_FAULTS: how many faults, then with partitions of 30 s; without it each kind once.

namespace rudderfish::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Fault;
using testing::RealClock;

constexpr Duration kLimit = seconds(5);  // Of a state that may be decided on.
constexpr Duration kRightWithin = seconds(5);
constexpr Duration kGiveUp = seconds(40);

testing::Testbed* g_testbed = nullptr;

// Goes with the real time, but for jumps ahead and for standing still.
class UnsteadyClock final : public Clock {
 public:
  Instant Now() const override { return stands_ ? stood_at_ : RealClock().Now() + ahead_; }
  void Jump(Duration by) { ahead_ += by; }
  void Stand() {
    stood_at_ = Now();
    stands_ = true;
  }
  void GoOn() {
    ahead_ = stood_at_ - RealClock().Now();
    stands_ = false;
  }

 private:
  Duration ahead_{0};
  bool stands_ = false;
  Instant stood_at_;
};

ClusterAccess AdminAccess() {
  auto access = FindCluster({.kubeconfig = g_testbed->kubeconfig()}, {});
  EXPECT_TRUE(access.has_value()) << access.error().message;
  return *std::move(access);
}

int PortOf(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }

// Counts decisions.
class Witness final : public Journal, public EvidenceSink {
 public:
  Result<int64_t> Append(JournalRow) override { return ++decisions; }
  Result<void> Conclude(int64_t, const RowEnd&) override { return {}; }
  Result<void> AppendEvidence(const EvidenceRow&) override { return {}; }

  int64_t decisions = 0;
};

ApplicationOptions Options() {
  ApplicationOptions options{.name = "shop",
                             .task = std::make_shared<const MigrationTask>(MigrationOptions{}),
                             .law = *LatencyLaw::Named("physical"),
                             .rest = milliseconds(200),
                             .staleness = kLimit};
  options.policy = *MakePolicy("greedy", *options.task);
  return options;
}

enum class Kind {
  kServerKilled,
  kCompacted,
  kWatchesCut,
  kTlsReset,
  kTooMany,
  kServerError,
  kGarbled,
  kPartition,
  kClockJumped,
  kClockStood,
};
constexpr int kKinds = 10;
constexpr const char* kKindNames[kKinds] = {
    "API server killed", "compacted (410)", "watches cut",  "TLS reset",   "429", "500",
    "garbled",           "partition",       "clock jumped", "clock stood",
};

// The controller, as `run` has it, and what it is compared with.
class Faults : public ::testing::Test {
 protected:
  Faults()
      : admin_(testing::OpenClient(AdminAccess(), {})),
        proxy_(PortOf(AdminAccess().server)),
        client_(testing::OpenClient(ThroughProxy(), {.watch_timeout = kLimit / 3}, clock_)),
        mirror_(&clock_),
        feed_(client_.get()) {
    feed_.Add(&mirror_, EndedPods::kAll);
  }

  ClusterAccess ThroughProxy() {
    ClusterAccess access = AdminAccess();
    EXPECT_TRUE(access.authority.file.empty());
    access.server = proxy_.url();
    access.authority.text += "\n" + proxy_.certificate();
    access.certificate = access.key = {};
    const std::string token = g_testbed->Kubectl({"create", "token", "shadow", "--duration=8h"});
    access.token = token.substr(0, token.find('\n'));
    return access;
  }

  void Start() {
    const auto synced = feed_.Sync(seconds(30));
    ASSERT_TRUE(synced.has_value()) << synced.error().message;
    auto application = ParseApplication(testing::kShopApplication, "application.yaml");
    ASSERT_TRUE(application.has_value()) << application.error().message;
    cluster_ = std::make_unique<KubeCluster>(
        &mirror_, std::make_shared<const Application>(*std::move(application)),
        KubeClusterOptions{.staleness_limit = kLimit});
    run_ = std::make_unique<ApplicationRun>(Options(), cluster_.get(), cluster_.get(), &witness_,
                                            &witness_);
  }

  // A bit of the controller's life. Whether a turn has just succeeded on what is known since `by`.
  bool Live(Instant by = {}) {
    feed_.Poll(milliseconds(10));
    return TakeTurn(by);
  }

  bool TakeTurn(Instant by) {
    const int64_t decisions = witness_.decisions;
    const Instant now = clock_.Now(), really_now = RealClock().Now();
    const bool turned = run_->Turn(Mode::kShadow, {}).has_value();
    if (!turned) ++refused_turns_;
    if (witness_.decisions > decisions) {
      if (now - Instant(run_->state().at) > kLimit) ++on_old_states_;
      // A server that is up may be heard before it calls itself ready.
      if (blind_since_ && really_now - std::max(*blind_since_, proxy_.last_passed()) > kLimit)
        ++while_blind_;
    }
    return turned && Instant(run_->state().at) >= by;
  }

  void LiveFor(Duration time) {
    const Instant end = RealClock().Now() + time;
    while (RealClock().Now() < end) Live();
  }

  bool EqualsAFreshList() {
    Mirror fresh(&RealClock());
    DumpContent content;
    for (const auto& [resource, path] :
         {std::pair(Resource::kNodes, "/api/v1/nodes"), std::pair(Resource::kPods, "/api/v1/pods"),
          std::pair(Resource::kReplicaSets, "/apis/apps/v1/replicasets"),
          std::pair(Resource::kDeployments, "/apis/apps/v1/deployments")}) {
      const auto body = admin_->Get(path);
      if (!body) return false;
      fresh.SinkOf(resource)->BeginList();
      EXPECT_TRUE(ReadDump(*body, path, &fresh, &content).has_value());
      fresh.SinkOf(resource)->EndList();
    }
    const auto same = [](const auto& a, const auto& b) {
      return std::equal(a.objects().begin(), a.objects().end(), b.objects().begin(),
                        b.objects().end(), [](const auto& x, const auto& y) {
                          return x.second == y.second && x.second.meta.resource_version.text ==
                                                             y.second.meta.resource_version.text;
                        });
    };
    return same(mirror_.pods, fresh.pods) && same(mirror_.nodes, fresh.nodes) &&
           same(mirror_.replica_sets, fresh.replica_sets) &&
           same(mirror_.deployments, fresh.deployments);
  }

  bool ServerAnswers() {
    return admin_->Call({.path = "/readyz", .deadline = seconds(1), .repeat = Repeat::kNever}).ok();
  }

  void AwaitServer() {
    const Instant end = RealClock().Now() + kGiveUp;
    while (!ServerAnswers() && RealClock().Now() < end) Live();
  }

  void Blind(Fault fault, Duration time) {
    proxy_.Begin(fault);
    blind_since_ = RealClock().Now();
    LiveFor(time);
  }

  void KillServer() {
    g_testbed->Signal("/kube-apiserver", SIGKILL);
    blind_since_ = RealClock().Now();
    LiveFor(milliseconds(200));
    AwaitServer();
  }

  // The API server no longer has the history since the versions we know.
  void Compact() {
    Blind(Fault::kTlsReset, milliseconds(500));  // The world goes on without us.
    writer_->Pause();
    simdjson::dom::parser parser;
    const auto body = admin_->Get("/api/v1/pods?limit=1");
    ASSERT_TRUE(body.has_value()) << body.error().message;
    std::string_view version;
    ASSERT_EQ(parser.parse(*body)["metadata"]["resourceVersion"].get(version), simdjson::SUCCESS);
    g_testbed->Do("stop", {"kube-apiserver"});
    g_testbed->Do("exec", {"control-plane", "--", "busybox", "wget", "-q", "-O", "-", "--post-data",
                           R"({"revision":")" + std::string(version) + R"(","physical":true})",
                           "http://127.0.0.1:2379/v3/kv/compaction"});
    g_testbed->Do("start", {"kube-apiserver"});
    AwaitServer();
  }

  // From its beginning to its end.
  void Suffer(Kind kind, Duration partition) {
    switch (kind) {
      case Kind::kServerKilled:
        return KillServer();
      case Kind::kCompacted:
        return Compact();
      case Kind::kWatchesCut:
        return proxy_.Cut();
      case Kind::kTlsReset:
        return Blind(Fault::kTlsReset, seconds(2));
      case Kind::kTooMany:
        return Blind(Fault::kTooMany, seconds(2));
      case Kind::kServerError:
        return Blind(Fault::kServerError, seconds(2));
      case Kind::kGarbled:
        return Blind(Fault::kGarbled, seconds(2));
      case Kind::kPartition:
        return Blind(Fault::kPartition, partition);
      case Kind::kClockJumped:
        clock_.Jump(seconds(60));
        TakeTurn({});  // Before anything is heard.
        return;
      case Kind::kClockStood:
        clock_.Stand();
        LiveFor(seconds(2));
        return clock_.GoOn();
    }
  }

  // What faults leave behind.
  struct Signs {
    int64_t failures, throttled, answers, resets, expired, events, unreadable, refused_turns;
  };

  Signs LookForSigns() const {
    Signs signs{.failures = client_->counts().failures,
                .throttled = client_->counts().throttled,
                .answers = proxy_.answers(),
                .resets = proxy_.resets(),
                .expired = 0,
                .events = 0,
                .unreadable = 0,
                .refused_turns = refused_turns_};
    for (const auto& [resource, objects, watch] : feed_.Counts()) {
      signs.expired += watch.expired;
      signs.events += watch.events;
      signs.unreadable += watch.unreadable;
    }
    return signs;
  }

  // Whether the fault was felt at all, lest the test should pass without one.
  bool WasFelt(Kind kind, const Signs& before) const {
    const Signs now = LookForSigns();
    const bool failed = now.failures > before.failures;
    switch (kind) {
      case Kind::kServerKilled:
        return failed;
      case Kind::kCompacted:
        return now.expired > before.expired;
      case Kind::kWatchesCut:
      case Kind::kTlsReset:
        return failed && now.resets > before.resets;
      case Kind::kTooMany:
        return now.throttled > before.throttled;
      case Kind::kServerError:
        return failed && now.answers > before.answers;
      case Kind::kGarbled:
        return now.unreadable > before.unreadable;
      case Kind::kPartition:
      case Kind::kClockJumped:
        return now.refused_turns > before.refused_turns;
      case Kind::kClockStood:
        return now.events > before.events;
    }
    return false;
  }

  // How long from the fault's end until all was right again.
  Duration Recover() {
    blind_since_.reset();
    proxy_.Begin(Fault::kNone);
    const Instant ended = RealClock().Now(), by = clock_.Now();
    writer_->Pause();  // What it did meanwhile is there to be caught up with.
    while (RealClock().Now() - ended < kGiveUp) {
      if (Live(by) && EqualsAFreshList()) break;
    }
    const Duration took = RealClock().Now() - ended;
    writer_->GoOn();
    return took;
  }

  void OneFault(Kind kind, Duration partition) {
    const int64_t decisions = witness_.decisions, writes = writer_->writes();
    const Instant patience = RealClock().Now() + seconds(10);
    while ((witness_.decisions == decisions || writer_->writes() < writes + 10) &&
           RealClock().Now() < patience) {
      Live();
    }
    ASSERT_GT(witness_.decisions, decisions) << "decides nothing before " << kKindNames[int(kind)];
    const Signs before = LookForSigns();
    Suffer(kind, partition);
    const Duration took = Recover();
    EXPECT_LE(Seconds(took), Seconds(kRightWithin)) << kKindNames[int(kind)];
    EXPECT_EQ(on_old_states_, 0) << kKindNames[int(kind)];
    EXPECT_EQ(while_blind_, 0) << kKindNames[int(kind)];
    EXPECT_TRUE(WasFelt(kind, before)) << kKindNames[int(kind)];
    ++counts_[int(kind)];
    worst_[int(kind)] = std::max(worst_[int(kind)], took);
    sum_[int(kind)] += took;
  }

  void Report() const {
    printf("%-20s %6s %9s %9s\n", "fault", "times", "mean s", "worst s");
    for (int kind = 0; kind < kKinds; ++kind) {
      if (counts_[kind] == 0) continue;
      printf("%-20s %6d %9.2f %9.2f\n", kKindNames[kind], counts_[kind],
             Seconds(sum_[kind]) / counts_[kind], Seconds(worst_[kind]));
    }
    printf(
        "%lld decisions, %lld on old states, %lld while blind; %lld writes, %lld turns refused\n",
        static_cast<long long>(witness_.decisions), static_cast<long long>(on_old_states_),
        static_cast<long long>(while_blind_), static_cast<long long>(writer_->writes()),
        static_cast<long long>(refused_turns_));
  }

  UnsteadyClock clock_;
  std::unique_ptr<ApiClient> admin_;
  testing::FaultProxy proxy_;
  std::unique_ptr<ApiClient> client_;
  Mirror mirror_;
  ClusterFeed feed_;
  std::unique_ptr<KubeCluster> cluster_;
  Witness witness_;
  std::unique_ptr<ApplicationRun> run_;
  std::unique_ptr<testing::Writer> writer_;
  std::optional<Instant> blind_since_;  // By the real clock.
  int64_t refused_turns_ = 0;
  int64_t on_old_states_ = 0;  // Decisions, by our clock.
  int64_t while_blind_ = 0;    // With nothing heard for longer, by the real one.
  int counts_[kKinds] = {};
  Duration worst_[kKinds] = {}, sum_[kKinds] = {};
};

TEST_F(Faults, EachIsOverWithinFiveSecondsOfItsEndAndNothingIsDecidedBlindly) {
  const char* wanted = std::getenv("RUDDERFISH_FAULTS");
  const int faults = wanted == nullptr ? kKinds : std::atoi(wanted);
  const Duration partition = wanted == nullptr ? seconds(8) : seconds(30);
  ASSERT_NO_FATAL_FAILURE(Start());
  writer_ = std::make_unique<testing::Writer>(AdminAccess());
  for (int i = 0; i < faults && !HasFatalFailure(); ++i) {
    OneFault(static_cast<Kind>(i % kKinds), partition);
  }
  Report();
}

}  // namespace

void UseTestbed(testing::Testbed* testbed) {
  g_testbed = testbed;
  testing::MakeShop(*testbed);
}

}  // namespace rudderfish::kube

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string reason = rudderfish::testing::Testbed::WhyNot(); !reason.empty()) {
    std::cout << "skipped: " << reason << "\n";
    return 77;
  }
  rudderfish::testing::Testbed testbed("test-faults", {"--nodes", "0", "--hollow", "30"});
  rudderfish::kube::UseTestbed(&testbed);
  return RUN_ALL_TESTS();
}
