// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"
#include "kube/api_client.h"
#include "kube/object_sink.h"

// Lists a resource that cannot be watched again and again, and tells a sink: the usage that
// metrics.k8s.io serves. A list that fails changes nothing.

namespace rudderfish::kube {

class ListPoll {
 public:
  // REQUIRES: `client` and `sink` outlive this. The first list is asked for at once.
  ListPoll(ApiClient* client, std::string path, ObjectSink* sink);
  ~ListPoll() { client_->Cancel(id_); }
  ListPoll(const ListPoll&) = delete;
  ListPoll& operator=(const ListPoll&) = delete;

  bool is_answered() const { return is_answered_; }        // Whatever the answer.
  const std::string& missing() const { return missing_; }  // Why there is none; empty: there is.

 private:
  void Ask();
  void Take(const ApiAnswer& answer);

  ApiClient* client_;
  std::string path_;
  ObjectSink* sink_;
  ApiClient::Id id_ = 0;  // The request or the timer under way.
  bool is_answered_ = false;
  std::string missing_;
};

}  // namespace rudderfish::kube
