// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/object_reader.h"
#include "kube/object_sink.h"

// All objects of one resource as the API server last told them, ordered by namespace and name; what
// a reflector or a dump fills. Observers are told what changed through one function. An object that
// is malformed is as if it were absent. Not thread safe.

namespace rudderfish::kube {

enum class ChangeKind { kAppeared, kChanged, kGone };

template <class T>
class Collection final : public ObjectSink {
 public:
  using Objects = std::map<ObjectKey, T>;
  using Reader = std::function<Result<T>(const Element&)>;
  using Listener = std::function<void(const ObjectKey&, ChangeKind)>;

  Collection(Reader read, const Clock* clock, Listener listener)
      : read_(std::move(read)), clock_(clock), listener_(std::move(listener)) {}

  // In place of the listener it was made with.
  void Listen(Listener listener) { listener_ = std::move(listener); }

  const Objects& objects() const { return objects_; }

  const T* Find(const ObjectKey& key) const {
    const auto at = objects_.find(key);
    return at == objects_.end() ? nullptr : &at->second;
  }

  bool synced() const { return synced_; }  // A list has come to its end.

  void SetSynced() { synced_ = true; }

  // When this was last known to equal what the API server has: at the end of a list, or as the
  // watcher says.
  Instant fresh_at() const { return fresh_at_; }
  void SetFreshAt(Instant at) { fresh_at_ = at; }

  // Puts an object in whatever the API server says; a list takes it out again. Another one of the
  // same name is the end of the one that was there, which a list does not tell.
  void Put(T object) {
    const ObjectKey key = object.meta.key;
    const T* known = Find(key);
    if (known != nullptr && known->meta.uid != object.meta.uid) Remove(key);
    const auto [at, inserted] = objects_.try_emplace(key);
    const bool changed = !inserted && !(at->second == object);
    at->second = std::move(object);
    if (inserted || changed) {
      listener_(key, inserted ? ChangeKind::kAppeared : ChangeKind::kChanged);
    }
  }

  void BeginList() override { listed_.clear(); }

  Result<void> Listed(const Element& element) override {
    TRY_ASSIGN(T object, read_(element));
    listed_.push_back(std::move(object));
    return {};
  }

  void EndList() override {
    std::vector<ObjectKey> gone;
    std::vector<const ObjectKey*> kept;
    kept.reserve(listed_.size());
    std::vector<T> listed = std::exchange(listed_, {});
    for (const T& object : listed) kept.push_back(&object.meta.key);
    std::sort(kept.begin(), kept.end(), [](auto* a, auto* b) { return *a < *b; });
    auto next = kept.begin();
    for (const auto& [key, unused] : objects_) {
      while (next != kept.end() && **next < key) ++next;
      if (next == kept.end() || key < **next) gone.push_back(key);
    }
    for (const ObjectKey& key : gone) Remove(key);
    for (T& object : listed) Put(std::move(object));
    synced_ = true;
    fresh_at_ = clock_->Now();
  }

  Result<void> Changed(const Element& element) override {
    Result<T> object = read_(element);
    if (!object) {
      if (const Result<ObjectKey> key = ReadKey(element)) Remove(*key);
      return tl::unexpected(std::move(object).error());
    }
    Put(*std::move(object));
    return {};
  }

  Result<void> Deleted(const Element& element) override {
    TRY_ASSIGN(const ObjectKey key, ReadKey(element));
    Remove(key);
    return {};
  }

 private:
  void Remove(const ObjectKey& key) {
    if (objects_.erase(key) > 0) listener_(key, ChangeKind::kGone);
  }

  Reader read_;
  const Clock* clock_;
  Listener listener_;
  Objects objects_;
  std::vector<T> listed_;  // Of the list that is under way.
  bool synced_ = false;
  Instant fresh_at_{};
};

}  // namespace rudderfish::kube
