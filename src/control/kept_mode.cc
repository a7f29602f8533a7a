// SPDX-License-Identifier: Apache-2.0
#include "control/kept_mode.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rudderfish {

std::string KeptModeText(const KeptMode& kept) {
  const OrderedJson json{{"configured", ModeName(kept.configured)},
                         {"mode", ModeName(kept.mode)},
                         {"policy", kept.policy},
                         {"objective", kept.objective},
                         {"since_ms", kept.since},
                         {"serves", kept.serves},
                         {"why", kept.why}};
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<KeptMode> KeptModeFrom(std::string_view text, std::string_view source) {
  TRY_ASSIGN(const Json json, ParseJson(text, source));
  const JsonReader reader(json, source);
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

}  // namespace rudderfish
