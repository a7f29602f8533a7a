// SPDX-License-Identifier: Apache-2.0
#include "control/kept_mode.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rudderfish {
namespace {

Result<KeptMode> ReadKeptMode(const JsonReader& reader) {
  KeptMode kept;
  const auto mode_at = [&](std::string_view key, Mode* mode) -> Result<void> {
    TRY_ASSIGN(const JsonReader at, reader.At(key));
    TRY_ASSIGN(const std::string name, at.AsString());
    const Result<Mode> named = ModeNamed(name);
    if (!named) return at.Refuse(named.error().message);
    *mode = *named;
    return {};
  };
  const auto text_at = [&](std::string_view key, std::string* value) -> Result<void> {
    TRY_ASSIGN(const JsonReader at, reader.At(key));
    TRY_ASSIGN(*value, at.AsString());
    return {};
  };
  TRY(mode_at("configured", &kept.configured));
  TRY(mode_at("mode", &kept.mode));
  TRY(text_at("policy", &kept.policy));
  TRY(text_at("objective", &kept.objective));
  TRY(text_at("why", &kept.why));
  TRY_ASSIGN(const JsonReader since, reader.At("since_ms"));
  TRY_ASSIGN(kept.since, since.AsInt(0));
  TRY_ASSIGN(const JsonReader serves, reader.At("serves"));
  TRY_ASSIGN(kept.serves, serves.AsBool());
  return kept;
}

}  // namespace

std::string LeaseWordText(const LeaseWord& word) {
  OrderedJson json{{"modes", OrderedJson::object()}};
  for (const auto& [kind, kept] : word.modes) {
    json["modes"][kind] = {{"configured", ModeName(kept.configured)},
                           {"mode", ModeName(kept.mode)},
                           {"policy", kept.policy},
                           {"objective", kept.objective},
                           {"since_ms", kept.since},
                           {"serves", kept.serves},
                           {"why", kept.why}};
  }
  if (word.pause.is_on()) {
    json["paused_since_ms"] = word.pause.since;
    json["paused_by"] = word.pause.by;
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<LeaseWord> LeaseWordFrom(std::string_view text, std::string_view source) {
  TRY_ASSIGN(const Json json, ParseJson(text, source));
  const JsonReader reader(json, source);
  LeaseWord word;
  TRY_ASSIGN(const auto since, reader.Find("paused_since_ms"));
  if (since) {
    TRY_ASSIGN(word.pause.since, since->AsInt(1));
    TRY_ASSIGN(const JsonReader by, reader.At("paused_by"));
    TRY_ASSIGN(word.pause.by, by.AsString());
    word.pause.is_shared = true;
  }
  TRY_ASSIGN(const JsonReader modes, reader.At("modes"));
  TRY_ASSIGN(const auto kinds, modes.Members());
  for (const auto& [kind, kept] : kinds) {
    TRY_ASSIGN(word.modes[kind], ReadKeptMode(kept));
  }
  return word;
}

}  // namespace rudderfish
