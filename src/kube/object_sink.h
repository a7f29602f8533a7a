// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include "base/result.h"

// Who is told what a list and watch of one resource of the API server says (kube/reflector.h) or
// what a dump of it says. All calls come from the thread that polls the client.
//
// A list replaces everything: what was not listed between BeginList and EndList is gone. It may
// come at any time, after a watch was cut or its version had expired. A list that is given up half
// way is restarted by another BeginList; until EndList the old objects count.
//
// Elements are valid during the call only. An error refuses one object, which is then as if it were
// absent; told by a watch it may bring a new list, lest it was damaged on its way.

namespace rudderfish::kube {

class ObjectSink {
 public:
  virtual ~ObjectSink() = default;

  virtual void BeginList() = 0;
  virtual Result<void> Listed(const simdjson::dom::element& object) = 0;
  virtual void EndList() = 0;

  virtual Result<void> Changed(const simdjson::dom::element& object) = 0;  // Added or modified.
  virtual Result<void> Deleted(const simdjson::dom::element& object) = 0;
};

}  // namespace rudderfish::kube
