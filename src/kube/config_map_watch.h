// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api_client.h"
#include "kube/object_sink.h"
#include "kube/reflector.h"

// Tells what one ConfigMap says, whenever that changes: how people control a program that may only
// read. One that is not there says nothing, as an empty one; one that cannot be understood is told
// as that, as it may say to stop. One thread, as the client.

namespace rudderfish::kube {

class ConfigMapWatch final : public ObjectSink {
 public:
  using Data = std::map<std::string, std::string>;
  using Said = Result<Data>;  // An error: it is there, and cannot be understood.
  using OnSaid = std::function<void(const Said&)>;

  // REQUIRES: `client` outlives this. Nothing is told before the first list has come.
  ConfigMapWatch(ApiClient* client, const std::string& name_space, const std::string& name,
                 OnSaid on_said);

  const Reflector& reflector() const { return reflector_; }

  // Why what it says is not known now, or only as it was longer ago than that; empty: it is.
  std::string WhyUnread(Duration staleness) const;

  void BeginList() override;
  Result<void> Listed(const simdjson::dom::element& object) override;
  void EndList() override;
  Result<void> Changed(const simdjson::dom::element& object) override;
  Result<void> Deleted(const simdjson::dom::element& object) override;

 private:
  void Tell(Said said);

  ApiClient* client_;
  OnSaid on_said_;
  std::optional<Said> told_;
  Said listed_;
  Reflector reflector_;
};

}  // namespace rudderfish::kube
