// SPDX-License-Identifier: Apache-2.0
#include "cli/controller_client.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "run/config.h"
#include "run/control_socket.h"

namespace rudderfish {
namespace {

constexpr std::chrono::seconds kAnswerPatience(5);

}  // namespace

Result<std::filesystem::path> SocketOf(const Arguments& arguments) {
  TRY(arguments.Exclude("socket", "config"));
  if (const auto path = arguments.Text("socket")) return std::filesystem::path(*path);
  TRY_ASSIGN(const Config config, LoadConfig(arguments.Text("config").value_or("rudderfish.yaml")));
  return config.server.socket;
}

Result<OrderedJson> AskRunning(const std::filesystem::path& socket, std::string_view request) {
  TRY_ASSIGN(const std::string answer, AskController(socket, request, kAnswerPatience));
  TRY_ASSIGN(OrderedJson json, ParseOrderedJson(answer, socket.string()));
  if (!json.is_object()) return Invalid("{}: is no controller of ours", socket.string());
  if (json.contains("error") && json["error"].is_string())
    return Invalid("{}", json["error"].get<std::string>());
  return json;
}

std::string ModeText(const OrderedJson& answer) {
  const auto mode = answer["mode"].get<std::string>();
  const auto why = answer["why"].get<std::string>();
  return why.empty() ? mode : fmt::format("{} ({})", mode, why);
}

}  // namespace rudderfish
