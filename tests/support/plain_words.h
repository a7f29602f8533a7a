// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex>
#include <string>

// Words that texts for readers do not use: help, errors, logs, docs and comments are in the plain
// technical English of Kubernetes' documentation (docs/glossary.md says which words to use).

namespace rudderfish {

// The first such expression of `text`; empty if there is none.
inline std::string PrivateWordIn(const std::string& text) {
  static const auto* form =
      new std::regex(R"(\b(anew|whoever|nobody|dares?|comes? of it|came of|asked beside|looks on)"
                     R"(|whatever each|fallen silent|stays as it was|beyond belief)"
                     R"(|of (placing|scaling|moving)[:,])"
                     R"(|(policy|policies|evaluation|term) of (placing|scaling))\b|\bso it is[.<])",
                     std::regex::icase | std::regex::optimize);
  std::smatch match;
  return std::regex_search(text, match, *form) ? match.str() : "";
}

}  // namespace rudderfish
