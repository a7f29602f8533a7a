// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/scheduling_observer.h"
#include "kube/claim_users.h"
#include "kube/collection.h"
#include "kube/feed_follower.h"
#include "kube/node_volumes.h"
#include "kube/pod_fates.h"
#include "kube/scheduling_reader.h"
#include "kube/unread_pods.h"

// Tells a SchedulingObserver of a live cluster, by what a ClusterFeed watches: nodes with their
// CSINodes and what is attached to them, namespaces, pods that have not ended; and, within the
// shapes of pods that wait, what claims, volumes, services and controllers say, read again
// when one of those changes; within those of pods that have a node, what is attached for them. A
// pod that cannot be read is told with a shape that says so (PodClass::unmodelled) and has what can
// be read of it; if that leaves open what it holds, its node is closed (PodClass::holds_unknown).
// Each is logged once. Pods that failed are told if the feed watches them (EndedPods).
//
// Where CSINodes, VolumeAttachments or storage classes may not be read, pods whose volumes CSI
// drivers attach say so, too: they are not modelled. All else goes on.
//
// One thread; all is done from within the feed's Poll and Sync.

namespace rudderfish::kube {

class SchedulingFollower final : public FeedFollower {
 public:
  // REQUIRES: `observer` outlives this.
  SchedulingFollower(const Clock* clock, SchedulingObserver* observer);
  SchedulingFollower(const SchedulingFollower&) = delete;
  SchedulingFollower& operator=(const SchedulingFollower&) = delete;

  // Without what is needed nothing is told; without what is wanted less is modelled.
  static std::span<const ResourceNeed> AllNeeds();
  std::span<const ResourceNeed> Needs() const override { return AllNeeds(); }
  ObjectSink* SinkOf(Resource resource) override;
  size_t Count(Resource resource) const override;
  void Polled(const ClusterFeed& feed) override;

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
  // What few pods have: those that wait, name volumes, or cannot be read.
  struct Rest {
    PodVolumes volumes;
    std::string json;    // While it waits: what is read again (kube/pod_text.h).
    std::string unread;  // Why it cannot be read; empty: it can.
  };
  struct Pod {
    struct Identity {
      ObjectKey key;
      std::string uid;

      bool operator==(const Identity&) const = default;
    };

    Identity meta;
    std::shared_ptr<const PodClass> shape;
    std::string node, nominated;
    bool is_terminating = false, is_running = false, is_disrupted = false, is_opted_out = false;
    std::shared_ptr<const Rest> rest;

    bool operator==(const Pod& other) const {
      return meta == other.meta && shape == other.shape && node == other.node &&
             nominated == other.nominated && is_terminating == other.is_terminating &&
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
  struct Source {
    std::unique_ptr<ObjectSink> sink;
    std::function<size_t()> count;
  };
  using Nodes = Collection<Held<SchedulingNode>>;

  template <class T>
  void Add(Resource resource, std::unique_ptr<Collection<T>> collection);
  template <class T>
  void AddReferred(Resource resource, Result<T> (*read)(const Element&),
                   std::function<void(const ObjectKey&, const T*)> note);
  void AddNamespaces();
  void AddNodes();
  void AddSelectors(Resource resource);
  void AddClaims();
  void AddWhatLimitsVolumes();
  void AddPods();
  Result<Pod> ReadPod(const Element& object);
  void TellPod(const ObjectKey& key, ChangeKind kind);
  void NoteUnreadLatency(const SchedulingNode& node);
  void TellWaiting(const std::string& place);
  void NoteWhatLimitsVolumes(const ClusterFeed& feed);
  void TellNodes();
  void ReadAgain();
  std::shared_ptr<const PodClass> ReadAgain(const Pod& known);
  static const Rest& RestOf(const Pod& pod);

  const Clock* clock_;
  SchedulingObserver* observer_;
  SchedulingReferences references_;
  PodClasses classes_;
  simdjson::dom::parser parser_;
  std::map<Resource, Source> sources_;
  const Collection<Held<Labelled>>* namespaces_ = nullptr;
  const Nodes* nodes_ = nullptr;
  Collection<Pod>* pods_ = nullptr;
  std::unique_ptr<PodFates> fates_;  // Before it.
  std::set<ObjectKey> waiting_;      // Pods.
  UnreadPods unread_;
  std::map<std::string, std::string> unread_latency_;  // Nodes, and why.
  std::set<std::string> changed_namespaces_;           // Whose services or controllers changed.
  ClaimUsers claim_users_;
  NodeVolumes node_volumes_{&references_};
  bool has_told_refusal_ = false;  // Of what limits volumes.
};

}  // namespace rudderfish::kube
