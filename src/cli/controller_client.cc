// SPDX-License-Identifier: Apache-2.0
#include "cli/controller_client.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "run/control_socket.h"

namespace rudderfish {
namespace {

constexpr std::chrono::seconds kAnswerPatience(5);

}  // namespace

Result<RunPlaces> PlacesOf(const Arguments& arguments) {
  TRY_ASSIGN(RunPlaces places, FindRunPlaces(arguments.Text("config").value_or("rudderfish.yaml")));
  if (!places.problem.empty())
    LogWarning("{}; reading its paths alone: socket {}, journal {}", places.problem,
               places.socket.string(), places.journal.string());
  return places;
}

Result<std::filesystem::path> SocketOf(const Arguments& arguments) {
  TRY(arguments.Exclude("socket", "config"));
  if (const auto path = arguments.Text("socket")) return std::filesystem::path(*path);
  TRY_ASSIGN(const RunPlaces places, PlacesOf(arguments));
  return places.socket;
}

Result<OrderedJson> AskRunning(const std::filesystem::path& socket, std::string_view request) {
  TRY_ASSIGN(std::optional<OrderedJson> answer, AskIfRunning(socket, request));
  if (answer) return *std::move(answer);
  return Fail(ErrorCode::kUnavailable,
              "{}: no controller is running there; `rudderfish run` starts one", socket.string());
}

Result<std::optional<OrderedJson>> AskIfRunning(const std::filesystem::path& socket,
                                                std::string_view request) {
  const Result<std::string> answer = AskController(socket, request, kAnswerPatience);
  if (!answer && answer.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!answer) return tl::unexpected(answer.error());
  TRY_ASSIGN(OrderedJson json, ParseOrderedJson(*answer, socket.string()));
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
