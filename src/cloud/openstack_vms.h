// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cloud/openstack_session.h"

// Virtual machines of a project, the hosts they run on, and where there is room for more, as Nova
// and Placement have them. What changes something is a value, so that it can be shown before it is
// sent.

namespace rudderfish {

// A VM belongs to a fleet by this metadata, in which it has a slot, from 1.
inline constexpr std::string_view kFleetKey = "rudderfish_fleet", kSlotKey = "rudderfish_slot";

struct Vm {
  std::string id, name;
  std::string status;  // As Nova says it: BUILD, ACTIVE, SHUTOFF, ERROR, VERIFY_RESIZE, ...
  std::string task;    // What is being done with it; empty: nothing.
  std::string host;    // Empty: it has none yet, or who asks may not know.
  std::string zone, flavor, fault;
  std::string created;  // ISO 8601, UTC.
  std::string fleet;    // Empty: of none.
  int slot = 0;
  bool has_run = false;  // It was launched once; it may run still, whatever its status says.

  bool IsGoing() const {
    return task == "deleting" || status == "DELETED" || status == "SOFT_DELETED";
  }
  // While it is migrated it goes on.
  bool IsReady() const {
    return (status == "ACTIVE" || status == "MIGRATING" || status == "VERIFY_RESIZE") && !IsGoing();
  }
};

// Of one VM, in Placement's units.
struct VmNeeds {
  int64_t vcpus = 0, memory_mb = 0, disk_gb = 0;
};

struct VmFlavor {
  std::string id, name;
  VmNeeds needs;
};

struct VmHost {
  std::string name, zone;
  std::string service_id;
  bool is_enabled = true, is_up = true;
  std::string why_disabled;
};

// How many more VMs of a flavor a host takes.
struct VmRoom {
  std::string host;
  int64_t vms = 0;
};

struct VmRequest {
  std::string method, path;
  std::string body;  // JSON; empty: none.
};

struct VmOrder {
  std::string name, fleet;
  int slot = 0;
  std::string image_id, flavor_id;
  std::string network;  // none, auto, or an id.
  std::string zone;     // Empty: the cloud's own.
  std::string host;     // Empty: Nova's scheduler chooses.
};

VmRequest CreateRequest(const VmOrder& order);
VmRequest DeleteRequest(const Vm& vm);
VmRequest StopRequest(const Vm& vm);  // By its operating system, which may take its time.
VmRequest StartRequest(const Vm& vm);
// `host` empty: Nova's scheduler chooses.
VmRequest LiveMigrateRequest(const Vm& vm, std::string_view host);
VmRequest ColdMigrateRequest(const Vm& vm, std::string_view host);
VmRequest ConfirmRequest(const Vm& vm);
VmRequest EnableRequest(const VmHost& host);
VmRequest DisableRequest(const VmHost& host, std::string_view why);

class OpenStackVms {
 public:
  explicit OpenStackVms(OpenStackSession* session) : session_(session) {}  // Outlives it.

  // All of the project, in the order in which they were made.
  Result<std::vector<Vm>> List();

  // The same of one, with its fault, which lists often lack.
  Result<Vm> Get(const Vm& vm);

  Result<std::vector<VmHost>> Hosts();

  // By name or id. kNotFound names those that there are.
  Result<VmFlavor> FindFlavor(std::string_view name);
  Result<std::string> FindImage(std::string_view name);

  // By Placement's allocation candidates, where hosts of `zone` have room; all hosts if it is
  // empty. Nothing: who asks may not know that, as Placement and aggregates are for administrators.
  Result<std::optional<std::vector<VmRoom>>> Room(const VmNeeds& needs, std::string_view zone);

  // The type of the VM's last migration, by Nova's name ("migration", "live-migration", "resize"),
  // and how it stands; empty if there was none.
  struct Migration {
    std::string type, status, from, to;
  };
  Result<Migration> LastMigration(const Vm& vm);

  Result<void> Send(const VmRequest& request);
  std::string Text(const VmRequest& request) const;

  OpenStackSession& session() { return *session_; }

 private:
  Result<std::vector<VmRoom>> RoomIn(const VmNeeds& needs, std::string_view zone);

  OpenStackSession* session_;
};

// An answer of GET /servers/detail, one of its elements.
Result<Vm> ReadVm(const JsonReader& server);

// An answer of GET /allocation_candidates, and providers' names by id.
Result<std::vector<VmRoom>> ReadRoom(const JsonReader& candidates,
                                     const std::vector<std::pair<std::string, std::string>>& names,
                                     const VmNeeds& needs);

}  // namespace rudderfish
