// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "cluster/application.h"
#include "kube/quantity.h"

// Fields of an API object, read with the leniency of its schema: what is absent or null has its
// zero value, what is there must be of the right type. Errors read "spec.containers[1].name:
// expected text"; the caller says of which object. Views are valid as long as the element.

namespace rudderfish::kube {

using Element = simdjson::dom::element;

// A text that may be missing or of another type: then empty.
std::string_view TextOf(const Element& object, std::string_view key);

// The member of an object, or nothing if it is absent or null. `object` may be nothing itself.
class Fields {
 public:
  Fields() = default;
  explicit Fields(const Element& object) : element_(object), there_(!object.is_null()) {}

  bool there() const { return there_; }

  // `path` is "name" or "metadata.name". A part on the way that is no object counts as absent only
  // if it is null; otherwise the readers below say what was expected.
  Result<Fields> Find(std::string_view path) const;

  Result<std::string_view> Text(std::string_view path) const;
  Result<bool> Flag(std::string_view path) const;
  Result<int64_t> Integer(std::string_view path, int64_t absent = 0) const;
  Result<Quantity> Amount(std::string_view path) const;
  Result<int64_t> Time(std::string_view path) const;  // Unix seconds; 0 if absent.
  Result<Labels> TextMap(std::string_view path) const;

  // Whether the path leads to something that is not null, nor empty.
  Result<bool> Has(std::string_view path) const;

  // visit(const Fields&) -> Result<void> for every element of an array.
  template <class Visit>
  Result<void> ForEach(std::string_view path, Visit visit) const {
    TRY_ASSIGN(const Fields list, Find(path));
    if (!list.there_) return {};
    simdjson::dom::array array;
    if (list.element_.get(array) != simdjson::SUCCESS) return Invalid("{}: expected a list", path);
    int position = 0;
    for (const Element item : array) {
      if (Result<void> visited = visit(Fields(item)); !visited) {
        return Invalid("{}[{}].{}", path, position, visited.error().message);
      }
      ++position;
    }
    return {};
  }

  const Element& element() const { return element_; }

 private:
  Element element_;
  bool there_ = false;
};

}  // namespace rudderfish::kube
