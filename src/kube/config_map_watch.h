// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "kube/api_client.h"
#include "kube/object_sink.h"
#include "kube/reflector.h"

// Tells what one ConfigMap says, whenever that changes: how people control a program that may only
// read. One that is not there says nothing, as an empty one. One thread, as the client.

namespace rudderfish::kube {

class ConfigMapWatch final : public ObjectSink {
 public:
  using Data = std::map<std::string, std::string>;
  using OnData = std::function<void(const Data&)>;

  // REQUIRES: `client` outlives this. Nothing is told before the first list has come.
  ConfigMapWatch(ApiClient* client, const std::string& name_space, const std::string& name,
                 OnData on_data);

  const Reflector& reflector() const { return reflector_; }

  void BeginList() override;
  Result<void> Listed(const simdjson::dom::element& object) override;
  void EndList() override;
  Result<void> Changed(const simdjson::dom::element& object) override;
  Result<void> Deleted(const simdjson::dom::element& object) override;

 private:
  void Tell(Data data);

  OnData on_data_;
  Data data_, listed_;
  bool told_ = false;
  Reflector reflector_;
};

}  // namespace rudderfish::kube
