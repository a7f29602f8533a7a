// SPDX-License-Identifier: Apache-2.0
#include "kube/list_poll.h"

#include <utility>

#include "kube/fields.h"

namespace rudderfish::kube {
namespace {

constexpr Duration kListPeriod = std::chrono::seconds(15);  // metrics-server's own resolution.

}  // namespace

ListPoll::ListPoll(ApiClient* client, std::string path, ObjectSink* sink)
    : client_(client), path_(std::move(path)), sink_(sink) {
  Ask();
}

void ListPoll::Ask() {
  id_ = client_->Send({.path = path_}, [this](const ApiAnswer& answer) {
    Take(answer);
    is_answered_ = true;
    id_ = client_->After(kListPeriod, [this] { Ask(); });
  });
}

void ListPoll::Take(const ApiAnswer& answer) {
  missing_.clear();
  if (!answer.ok()) {
    missing_ =
        answer.status.code == 404 ? "metrics.k8s.io is not served" : answer.outcome.error().message;
    return;
  }
  simdjson::dom::parser parser;
  simdjson::dom::array items;
  if (parser.parse(answer.body)["items"].get(items) != simdjson::SUCCESS) {
    missing_ = "the answer is no list";
    return;
  }
  sink_->BeginList();
  for (const Element item : items) {
    if (const Result<void> listed = sink_->Listed(item); !listed) {
      missing_ = listed.error().message;  // And that object is left out.
    }
  }
  sink_->EndList();
}

}  // namespace rudderfish::kube
