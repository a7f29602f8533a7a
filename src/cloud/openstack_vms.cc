// SPDX-License-Identifier: Apache-2.0
#include "cloud/openstack_vms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/escape.h"
#include "base/one_line.h"
#include "base/suggest.h"
#include "cloud/json_text.h"

namespace rudderfish {
namespace {

constexpr OpenStackService kNova = OpenStackService::kCompute;
constexpr OpenStackService kPlacement = OpenStackService::kPlacement;
constexpr int kCandidatesMax = 1000;

Result<int64_t> NumberAt(const JsonReader& at, std::string_view key) {
  TRY_ASSIGN(const JsonReader found, at.At(key));
  return found.AsInt(0, int64_t{1} << 40);
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : std::isxdigit(static_cast<unsigned char>(text[i])) == 0)
      return false;
  }
  return true;
}

VmRequest Action(const Vm& vm, const Json& body) {
  return {"POST", fmt::format("/servers/{}/action", vm.id), body.dump()};
}

Error NoneNamed(std::string_view what, std::string_view name, std::vector<std::string> known) {
  std::sort(known.begin(), known.end());
  const std::vector<std::string_view> views(known.begin(), known.end());
  return {ErrorCode::kNotFound,
          fmt::format(
              "no {} `{}`{}; there are {}", what, OneLine(name, 100), DidYouMean(name, views),
              known.empty() ? "none" : OneLine(fmt::format("{}", fmt::join(known, ", ")), 300))};
}

std::string ResourcesText(const VmNeeds& needs) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view name, int64_t amount) {
    if (amount > 0) parts.push_back(fmt::format("{}:{}", name, amount));
  };
  add("VCPU", needs.vcpus);
  add("MEMORY_MB", needs.memory_mb);
  add("DISK_GB", needs.disk_gb);
  return fmt::format("{}", fmt::join(parts, ","));
}

// How many times the needs fit into what a provider has left.
Result<int64_t> FitsIn(const JsonReader& summary, const VmNeeds& needs) {
  TRY_ASSIGN(const JsonReader resources, summary.At("resources"));
  int64_t fits = std::numeric_limits<int64_t>::max();
  for (const auto& [name, need] : {std::pair<std::string_view, int64_t>{"VCPU", needs.vcpus},
                                   {"MEMORY_MB", needs.memory_mb},
                                   {"DISK_GB", needs.disk_gb}}) {
    if (need <= 0) continue;
    TRY_ASSIGN(const auto resource, resources.Find(name));
    if (!resource) return int64_t{0};  // Of another provider, as shared storage is.
    TRY_ASSIGN(const int64_t capacity, NumberAt(*resource, "capacity"));
    TRY_ASSIGN(const int64_t used, NumberAt(*resource, "used"));
    fits = std::min(fits, std::max<int64_t>(0, capacity - used) / need);
  }
  return fits;
}

}  // namespace

VmRequest CreateRequest(const VmOrder& order) {
  Json server = {{"name", order.name},
                 {"imageRef", order.image_id},
                 {"flavorRef", order.flavor_id},
                 {"metadata",
                  {{std::string(kFleetKey), order.fleet},
                   {std::string(kSlotKey), fmt::format("{}", order.slot)}}}};
  if (order.network == "none" || order.network == "auto")
    server["networks"] = order.network;
  else
    server["networks"] = Json::array({{{"uuid", order.network}}});
  if (!order.zone.empty()) server["availability_zone"] = order.zone;
  if (!order.host.empty()) server["host"] = order.host;
  return {"POST", "/servers", Json{{"server", std::move(server)}}.dump()};
}

VmRequest DeleteRequest(const Vm& vm) { return {"DELETE", "/servers/" + vm.id, ""}; }

VmRequest StopRequest(const Vm& vm) { return Action(vm, {{"os-stop", nullptr}}); }

VmRequest StartRequest(const Vm& vm) { return Action(vm, {{"os-start", nullptr}}); }

VmRequest LiveMigrateRequest(const Vm& vm, std::string_view host) {
  Json move = {{"host", host.empty() ? Json(nullptr) : Json(host)}, {"block_migration", "auto"}};
  return Action(vm, {{"os-migrateLive", std::move(move)}});
}

VmRequest ColdMigrateRequest(const Vm& vm, std::string_view host) {
  return Action(vm, {{"migrate", host.empty() ? Json(nullptr) : Json{{"host", host}}}});
}

VmRequest ConfirmRequest(const Vm& vm) { return Action(vm, {{"confirmResize", nullptr}}); }

VmRequest EnableRequest(const VmHost& host) {
  return {"PUT", "/os-services/" + host.service_id, Json{{"status", "enabled"}}.dump()};
}

VmRequest DisableRequest(const VmHost& host, std::string_view why) {
  return {"PUT", "/os-services/" + host.service_id,
          Json{{"status", "disabled"}, {"disabled_reason", why}}.dump()};
}

Result<Vm> ReadVm(const JsonReader& server) {
  Vm vm;
  TRY_ASSIGN(const JsonReader id, server.At("id"));
  TRY_ASSIGN(vm.id, id.AsString());
  if (!IsUuid(vm.id)) return id.Expected("an id");  // It becomes part of paths.
  TRY_ASSIGN(vm.name, TextAt(server, "name"));
  TRY_ASSIGN(const JsonReader status, server.At("status"));
  TRY_ASSIGN(vm.status, status.AsString());
  TRY_ASSIGN(vm.task, TextAt(server, "OS-EXT-STS:task_state"));
  TRY_ASSIGN(vm.host, TextAt(server, "OS-EXT-SRV-ATTR:host"));
  TRY_ASSIGN(vm.zone, TextAt(server, "OS-EXT-AZ:availability_zone"));
  TRY_ASSIGN(vm.created, TextAt(server, "created"));
  TRY_ASSIGN(const std::string launched, TextAt(server, "OS-SRV-USG:launched_at"));
  vm.has_run = !launched.empty();
  TRY_ASSIGN(const auto flavor, server.Find("flavor"));
  if (flavor) {
    TRY_ASSIGN(vm.flavor, TextAt(*flavor, "original_name"));
  }
  TRY_ASSIGN(const auto fault, server.Find("fault"));
  if (fault) {
    TRY_ASSIGN(vm.fault, TextAt(*fault, "message"));
  }
  TRY_ASSIGN(const auto metadata, server.Find("metadata"));
  if (!metadata) return vm;
  TRY_ASSIGN(const std::string fleet, TextAt(*metadata, kFleetKey));
  TRY_ASSIGN(const std::string slot, TextAt(*metadata, kSlotKey));
  const auto [end, error] = std::from_chars(slot.data(), slot.data() + slot.size(), vm.slot);
  // Metadata that is not ours is no error: then it is of no fleet, and is never touched.
  if (error == std::errc{} && end == slot.data() + slot.size() && vm.slot > 0)
    vm.fleet = fleet;
  else
    vm.slot = 0;
  return vm;
}

Result<std::vector<VmRoom>> ReadRoom(const JsonReader& candidates,
                                     const std::vector<std::pair<std::string, std::string>>& names,
                                     const VmNeeds& needs) {
  TRY_ASSIGN(const JsonReader list, candidates.At("allocation_requests"));
  TRY_ASSIGN(const std::vector<JsonReader> requests, list.Elements());
  TRY_ASSIGN(const JsonReader summaries, candidates.At("provider_summaries"));
  std::map<std::string, int64_t> room;
  for (const JsonReader& request : requests) {
    TRY_ASSIGN(const JsonReader allocations, request.At("allocations"));
    TRY_ASSIGN(const auto providers, allocations.Members());
    for (const auto& provider : providers) {
      const std::string& id = provider.first;
      const auto named = std::find_if(names.begin(), names.end(),
                                      [&](const auto& one) { return one.first == id; });
      if (named == names.end()) continue;
      TRY_ASSIGN(const JsonReader summary, summaries.At(id));
      TRY_ASSIGN(room[named->second], FitsIn(summary, needs));
    }
  }
  std::vector<VmRoom> all;
  for (const auto& [host, vms] : room) {
    if (vms > 0) all.push_back({host, vms});
  }
  return all;
}

Result<std::vector<Vm>> OpenStackVms::List() {
  // No filter: those that Nova has accepted and not yet given a cell pass few of them.
  TRY_ASSIGN(const std::vector<Json> servers,
             session_->List(kNova, "/servers/detail?sort_key=created_at&sort_dir=asc", "servers"));
  std::vector<Vm> vms;
  std::set<std::string> seen;
  for (const Json& server : servers) {
    TRY_ASSIGN(Vm vm, ReadVm(JsonReader(server, "GET /servers/detail")));
    if (seen.insert(vm.id).second) vms.push_back(std::move(vm));  // Pages may overlap.
  }
  return vms;
}

Result<Vm> OpenStackVms::Get(const Vm& vm) {
  const std::string path = "/servers/" + vm.id;
  TRY_ASSIGN(const Json json, session_->Get(kNova, path));
  TRY_ASSIGN(const JsonReader server, JsonReader(json, "GET " + path).At("server"));
  return ReadVm(server);
}

Result<std::vector<VmHost>> OpenStackVms::Hosts() {
  TRY_ASSIGN(const Json json, session_->Get(kNova, "/os-services?binary=nova-compute"));
  TRY_ASSIGN(const JsonReader list, JsonReader(json, "GET /os-services").At("services"));
  TRY_ASSIGN(const std::vector<JsonReader> services, list.Elements());
  std::vector<VmHost> hosts;
  for (const JsonReader& service : services) {
    VmHost host;
    TRY_ASSIGN(host.name, TextAt(service, "host"));
    TRY_ASSIGN(host.zone, TextAt(service, "zone"));
    TRY_ASSIGN(const JsonReader id, service.At("id"));
    TRY_ASSIGN(host.service_id, id.AsString());
    if (!IsUuid(host.service_id)) return id.Expected("an id");
    TRY_ASSIGN(const std::string status, TextAt(service, "status"));
    TRY_ASSIGN(const std::string state, TextAt(service, "state"));
    TRY_ASSIGN(host.why_disabled, TextAt(service, "disabled_reason"));
    host.is_enabled = status == "enabled";
    host.is_up = state == "up";
    hosts.push_back(std::move(host));
  }
  std::sort(hosts.begin(), hosts.end(),
            [](const VmHost& a, const VmHost& b) { return a.name < b.name; });
  return hosts;
}

Result<VmFlavor> OpenStackVms::FindFlavor(std::string_view name) {
  TRY_ASSIGN(const std::vector<Json> list, session_->List(kNova, "/flavors/detail", "flavors"));
  std::vector<std::string> known;
  for (const Json& json : list) {
    const JsonReader reader(json, "GET /flavors/detail");
    VmFlavor flavor;
    TRY_ASSIGN(flavor.id, TextAt(reader, "id"));
    TRY_ASSIGN(flavor.name, TextAt(reader, "name"));
    TRY_ASSIGN(flavor.needs.vcpus, NumberAt(reader, "vcpus"));
    TRY_ASSIGN(flavor.needs.memory_mb, NumberAt(reader, "ram"));
    TRY_ASSIGN(flavor.needs.disk_gb, NumberAt(reader, "disk"));
    if (flavor.name == name || flavor.id == name) return flavor;
    known.push_back(flavor.name);
  }
  return tl::unexpected(NoneNamed("flavor", name, std::move(known)));
}

Result<std::string> OpenStackVms::FindImage(std::string_view name) {
  if (IsUuid(name)) return std::string(name);
  TRY_ASSIGN(const Json json, session_->Get(OpenStackService::kImage, "/v2/images?limit=1000"));
  TRY_ASSIGN(const JsonReader list, JsonReader(json, "GET /v2/images").At("images"));
  TRY_ASSIGN(const std::vector<JsonReader> images, list.Elements());
  std::vector<std::string> known;
  std::string found;
  for (const JsonReader& image : images) {
    TRY_ASSIGN(const std::string own, TextAt(image, "name"));
    TRY_ASSIGN(const std::string id, TextAt(image, "id"));
    known.push_back(own);
    if (own != name) continue;
    if (!found.empty())
      return Invalid("several images are called `{}`; name one by its id", OneLine(name, 100));
    found = id;
  }
  if (!found.empty()) return found;
  return tl::unexpected(NoneNamed("image", name, std::move(known)));
}

Result<std::optional<std::vector<VmRoom>>> OpenStackVms::Room(const VmNeeds& needs,
                                                              std::string_view zone) {
  Result<std::vector<VmRoom>> room = RoomIn(needs, zone);
  if (room) return std::optional(*std::move(room));
  if (room.error().code == ErrorCode::kFailedPrecondition)
    return std::optional<std::vector<VmRoom>>();
  return tl::unexpected(room.error());
}

Result<std::vector<VmRoom>> OpenStackVms::RoomIn(const VmNeeds& needs, std::string_view zone) {
  std::string members;
  if (!zone.empty()) {
    TRY_ASSIGN(const Json json, session_->Get(kNova, "/os-aggregates"));
    TRY_ASSIGN(const JsonReader list, JsonReader(json, "GET /os-aggregates").At("aggregates"));
    TRY_ASSIGN(const std::vector<JsonReader> aggregates, list.Elements());
    for (const JsonReader& one : aggregates) {
      TRY_ASSIGN(const std::string own, TextAt(one, "availability_zone"));
      TRY_ASSIGN(const std::string id, TextAt(one, "uuid"));
      if (own == zone) members += (members.empty() ? "&member_of=in:" : ",") + PercentEncoded(id);
    }
    // A zone without an aggregate is the cloud's own, which the rest of the hosts are in.
  }
  TRY_ASSIGN(const auto providers,
             session_->List(kPlacement, "/resource_providers", "resource_providers"));
  std::vector<std::pair<std::string, std::string>> names;
  for (const Json& provider : providers) {
    const JsonReader reader(provider, "GET /resource_providers");
    TRY_ASSIGN(std::string id, TextAt(reader, "uuid"));
    TRY_ASSIGN(std::string name, TextAt(reader, "name"));
    names.emplace_back(std::move(id), std::move(name));
  }
  TRY_ASSIGN(const Json json,
             session_->Get(kPlacement, fmt::format("/allocation_candidates?resources={}{}&limit={}",
                                                   ResourcesText(needs), members, kCandidatesMax)));
  return ReadRoom(JsonReader(json, "GET /allocation_candidates"), names, needs);
}

Result<OpenStackVms::Migration> OpenStackVms::LastMigration(const Vm& vm) {
  TRY_ASSIGN(const std::vector<Json> list,
             session_->List(kNova, "/os-migrations?instance_uuid=" + vm.id, "migrations"));
  Migration last;
  std::string newest;
  for (const Json& json : list) {
    const JsonReader reader(json, "GET /os-migrations");
    TRY_ASSIGN(const std::string created, TextAt(reader, "created_at"));
    if (created < newest) continue;
    newest = created;
    TRY_ASSIGN(last.type, TextAt(reader, "migration_type"));
    TRY_ASSIGN(last.status, TextAt(reader, "status"));
    TRY_ASSIGN(last.from, TextAt(reader, "source_compute"));
    TRY_ASSIGN(last.to, TextAt(reader, "dest_compute"));
  }
  return last;
}

Result<void> OpenStackVms::Send(const VmRequest& request) {
  Result<Json> answer;
  if (request.method == "DELETE") {
    answer = session_->Delete(kNova, request.path);
    if (!answer && answer.error().code == ErrorCode::kNotFound) return {};  // It is gone.
  } else if (request.method == "PUT") {
    answer = session_->Put(kNova, request.path, request.body);
  } else {
    answer = session_->Post(kNova, request.path, request.body);
  }
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

std::string OpenStackVms::Text(const VmRequest& request) const {
  return session_->RequestText(request.method, kNova, request.path, request.body);
}

}  // namespace rudderfish
