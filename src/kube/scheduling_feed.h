// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/scheduling_observer.h"
#include "kube/access_review.h"
#include "kube/api_client.h"
#include "kube/claim_users.h"
#include "kube/collection.h"
#include "kube/node_volumes.h"
#include "kube/reflector.h"
#include "kube/scheduling_reader.h"
#include "kube/unread_pods.h"

// Tells a SchedulingObserver of a live cluster, by list and watch: nodes with their CSINodes and
// what is attached to them, namespaces, pods that have not ended; and, within the shapes of pods
// that wait, what claims, volumes, services and controllers say, which are read anew when one of
// those changes; within those of pods that have a node, what is attached for them. A pod that
// cannot be read is told with a shape that says so (PodClass::unmodelled) and has what can be read
// of it; if that leaves open what it holds, its node is closed (PodClass::holds_unknown). Each is
// logged once.
//
// Where CSINodes, VolumeAttachments or storage classes may not be read, pods whose volumes CSI
// drivers attach say so, too: they are not modelled. All else goes on.
//
// Beside a Mirror (kube/mirror_feed.h) rather than from it: whoever places pods needs what no
// mirror keeps, and nothing of the rest. One thread; all is done from within Poll and Sync.

namespace rudderfish::kube {

class SchedulingFeed {
 public:
  // Pods that fail leave what is watched unseen: to be told of them costs a watch more.
  enum class Failures { kUnseen, kTold };

  // REQUIRES: `client` and `observer` outlive this.
  SchedulingFeed(ApiClient* client, SchedulingObserver* observer,
                 Failures failures = Failures::kUnseen);
  SchedulingFeed(const SchedulingFeed&) = delete;
  SchedulingFeed& operator=(const SchedulingFeed&) = delete;

  // Polls until everything has been listed once; calls `on_step` now and then. Fails with what the
  // server said, at once if it refuses, else once nothing more has been listed for `limit`; after
  // 5 s, or 30 s without an error, if nothing is heard of it.
  Result<void> Sync(Duration limit, const std::function<void()>& on_step = nullptr);

  void Poll(Duration timeout);

  // Since when what was told is the truth; nothing before all is listed.
  std::optional<Instant> FreshAsOf() const;

  // What is in trouble and why; empty: nothing.
  std::string Trouble() const;

  struct Watched {
    std::string resource;  // replicasets.apps
    size_t objects = 0;
    ReflectorCounts counts;
  };
  std::vector<Watched> Counts() const;

  // Without what is needed nothing is told; without what is wanted less is modelled.
  enum class Need { kNeeded, kWanted };
  static std::vector<Right> Rights(Need need);

  const SchedulingReferences& references() const { return references_; }
  bool IsNamespaceOptedOut(const std::string& name) const;

  // Pods that cannot be read, and what of nodes cannot.
  struct Unread : UnreadPods::Counts {
    int latencies = 0;  // Nodes that say of how far they are from the users what is no number.
  };
  Unread CountUnread() const;

 private:
  template <class T>
  struct Held {
    Metadata meta;
    T value;

    bool operator==(const Held&) const = default;
  };
  struct Pod {
    Metadata meta;
    std::shared_ptr<const PodClass> shape;
    std::string node;
    bool is_terminating = false, has_ended = false;
    bool is_running = false, is_disrupted = false, is_opted_out = false;
    PodVolumes volumes;
    std::string json;    // While it waits.
    std::string unread;  // Why it cannot be read; empty: it can.

    bool operator==(const Pod& other) const {
      return meta == other.meta && shape == other.shape && node == other.node &&
             is_terminating == other.is_terminating && has_ended == other.has_ended &&
             is_running == other.is_running && is_disrupted == other.is_disrupted &&
             is_opted_out == other.is_opted_out;
    }
  };
  struct Labelled {
    Labels labels;
    bool is_opted_out = false;

    bool operator==(const Labelled&) const = default;
  };
  struct Selector {
    LabelSelector selector;

    bool operator==(const Selector&) const = default;
  };
  struct Failed {
    std::string reason;

    bool operator==(const Failed&) const = default;
  };
  struct Source {
    std::string resource, group;
    std::unique_ptr<ObjectSink> sink;
    std::unique_ptr<Reflector> reflector;
    std::function<size_t()> count;
    Need need = Need::kNeeded;

    bool IsRefused() const;  // And no more than wanted.
  };
  using Nodes = Collection<Held<SchedulingNode>>;

  template <class T>
  void Add(std::string resource, std::string group, std::string kind, std::string selector,
           std::unique_ptr<Collection<T>> collection);
  template <class T>
  void AddReferred(std::string resource, std::string group, std::string kind,
                   Result<T> (*read)(const Element&),
                   std::function<void(const ObjectKey&, const T*)> note);
  void AddNodes();
  void AddSelectors(std::string resource, std::string group, std::string kind);
  void AddClaims();
  void AddWhatLimitsVolumes();
  void AddFailures();
  Result<Pod> ReadPod(const Element& object);
  void TellPod(const ObjectKey& key, ChangeKind kind);
  void NoteUnreadLatency(const SchedulingNode& node);
  void TellWaiting(const std::string& place);
  void NoteWhatLimitsVolumes();
  void TellNodes();
  void ReadAgain();
  std::shared_ptr<const PodClass> ReadAgain(const Pod& known);

  ApiClient* client_;
  SchedulingObserver* observer_;
  SchedulingReferences references_;
  PodClasses classes_;
  simdjson::dom::parser parser_;
  std::vector<Source> sources_;
  const Collection<Held<Labelled>>* namespaces_ = nullptr;
  const Nodes* nodes_ = nullptr;
  Collection<Pod>* pods_ = nullptr;
  std::set<ObjectKey> waiting_;  // Pods.
  UnreadPods unread_;
  std::map<std::string, std::string> unread_latency_;  // Nodes, and why.
  std::set<std::string> changed_namespaces_;           // Whose services or controllers changed.
  ClaimUsers claim_users_;
  NodeVolumes node_volumes_{&references_};
  bool has_told_refusal_ = false;  // Of what limits volumes.
};

}  // namespace rudderfish::kube
