// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/one_line.h"
#include "base/progress.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "cli/terminal.h"
#include "cloud/vm_fleet.h"
#include "cloud/vm_moves.h"

// `vms` shows and changes the virtual machines of an OpenStack project by hand, by the same code as
// decisions about the capacity of regions.

namespace rudderfish {
namespace {

constexpr std::string_view kDrainReason = "rudderfish: drain";
constexpr double kVmsTimeoutS = 600;
constexpr int kVmsMax = 1000, kRequestsShown = 3;
constexpr auto kTurn = std::chrono::milliseconds(500);

struct VmsCloud {
  std::unique_ptr<OpenStackSession> session;
  std::unique_ptr<OpenStackVms> vms;
};

Result<VmsCloud> OpenCloud(const Arguments& arguments) {
  TRY_ASSIGN(OpenStackCloud cloud, ReadClouds(arguments.Text("clouds").value_or(""),
                                              arguments.Text("cloud").value_or("")));
  VmsCloud open;
  open.session = std::make_unique<OpenStackSession>(std::move(cloud));
  open.vms = std::make_unique<OpenStackVms>(open.session.get());
  TRY(open.session->Open());
  return open;
}

OrderedJson VmJson(const Vm& vm) {
  return {{"name", vm.name},   {"id", vm.id},     {"status", vm.status}, {"task", vm.task},
          {"host", vm.host},   {"zone", vm.zone}, {"flavor", vm.flavor}, {"created", vm.created},
          {"fleet", vm.fleet}, {"slot", vm.slot}, {"fault", vm.fault}};
}

Result<ExitStatus> ListVms(const Arguments& arguments, OpenStackVms* cloud) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  TRY_ASSIGN(std::vector<Vm> vms, cloud->List());
  const std::optional<std::string> fleet = arguments.Text("fleet");
  if (fleet) std::erase_if(vms, [&](const Vm& vm) { return vm.fleet != *fleet; });
  if (format == OutputFormat::kJson) {
    OrderedJson list = OrderedJson::array();
    for (const Vm& vm : vms) list.push_back(VmJson(vm));
    TRY(Print(OrderedJson{{"schema_version", 1}, {"vms", list}}.dump(1) + "\n"));
    return ExitStatus::kDone;
  }
  TextTable table({{"NAME"}, {"STATUS"}, {"TASK"}, {"HOST"}, {"ZONE"}, {"FLAVOR"}, {"FLEET"}});
  for (const Vm& vm : vms) {
    table.Row({OneLine(vm.name, 60), OneLine(vm.status, 20), OneLine(vm.task, 20),
               OneLine(vm.host, 60), OneLine(vm.zone, 40), OneLine(vm.flavor, 40),
               OneLine(vm.fleet, 40)});
  }
  TRY(Print(table.Text()));
  return ExitStatus::kDone;
}

Result<ExitStatus> ListHosts(const Arguments& arguments, OpenStackVms* cloud) {
  TRY_ASSIGN(const OutputFormat format, OutputFormatOf(arguments));
  std::optional<VmFlavor> flavor;
  if (arguments.Has("flavor")) {
    TRY_ASSIGN(flavor, cloud->FindFlavor(*arguments.Text("flavor")));
  }
  TRY_ASSIGN(const std::vector<VmHost> hosts, cloud->Hosts());
  TRY_ASSIGN(const std::vector<Vm> vms, cloud->List());
  std::optional<std::vector<VmRoom>> room;
  if (flavor) {
    TRY_ASSIGN(room, cloud->Room(flavor->needs, ""));
  }
  OrderedJson list = OrderedJson::array();
  TextTable table({{"HOST"},
                   {"ZONE"},
                   {"STATE"},
                   {"VMS", TextTable::Align::kRight},
                   {"ROOM", TextTable::Align::kRight},
                   {"WHY"}});
  for (const VmHost& host : hosts) {
    const auto own =
        std::count_if(vms.begin(), vms.end(), [&](const Vm& vm) { return vm.host == host.name; });
    std::optional<int64_t> more;
    if (room) {
      more = 0;
      for (const VmRoom& one : *room) more = one.host == host.name ? one.vms : *more;
    }
    const std::string state = !host.is_up ? "down" : host.is_enabled ? "up" : "disabled";
    list.push_back({{"name", host.name},
                    {"zone", host.zone},
                    {"state", state},
                    {"vms", own},
                    {"room", more ? OrderedJson(*more) : OrderedJson(nullptr)},
                    {"why", host.why_disabled}});
    table.Row({OneLine(host.name, 60), OneLine(host.zone, 40), state, fmt::format("{}", own),
               more ? fmt::format("{}", *more) : "-", OneLine(host.why_disabled, 60)});
  }
  if (format == OutputFormat::kJson)
    TRY(Print(OrderedJson{{"schema_version", 1}, {"hosts", list}}.dump(1) + "\n"));
  else
    TRY(Print(table.Text()));
  return ExitStatus::kDone;
}

// The exact requests, the first in full.
template <class Step>
Result<void> ShowRequests(const std::vector<Step>& steps, const OpenStackVms& cloud,
                          std::string_view what) {
  if (steps.empty()) return Print(fmt::format("nothing to send: {}\n", what));
  std::string text;
  int shown = 0;
  for (const Step& step : steps) {
    if (shown++ == kRequestsShown) break;
    text += cloud.Text(step.request) + "\n";
  }
  if (steps.size() > kRequestsShown)
    text += fmt::format("and {} like these\n",
                        Counted(static_cast<int64_t>(steps.size()) - kRequestsShown, "request"));
  return Print(text + "nothing was sent; --apply sends them\n");
}

// Turns until there is nothing left to do. `turn` returns whether that is so, and what to show.
template <class Turn>
Result<ExitStatus> TurnUntilSettled(const Session& session, std::string_view title,
                                    const Arguments& arguments, Turn&& turn) {
  TRY_ASSIGN(const double timeout_s, arguments.Seconds("timeout", kVmsTimeoutS));
  const SystemClock clock;
  const Instant end =
      clock.Now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout_s));
  const std::atomic<bool>& stop = StopOnSignals();
  Progress progress{std::string(title), session.verbosity};
  std::string trouble;
  while (true) {
    std::string text;
    double fraction = 0;
    const Result<bool> settled = turn(&fraction, &text);
    if (settled && *settled) return ExitStatus::kDone;
    if (!settled) {
      // What may work later is tried until the time is over.
      const ErrorCode code = settled.error().code;
      if (code != ErrorCode::kUnavailable && code != ErrorCode::kDeadlineExceeded)
        return tl::unexpected(settled.error());
      trouble = settled.error().message;
    }
    progress.Update(fraction, text);
    if (stop) return ExitStatus::kInterrupted;
    if (clock.Now() >= end) {
      progress.Done();
      return Fail(ErrorCode::kDeadlineExceeded,
                  "not done after {:.0f} s: {}{}; repeat the command to go on", timeout_s, text,
                  trouble.empty() ? "" : "; last error: " + trouble);
    }
    std::this_thread::sleep_for(kTurn);
  }
}

Result<VmFleetSpec> FleetOf(const Arguments& arguments, OpenStackVms* cloud) {
  VmFleetSpec spec;
  TRY_ASSIGN(spec.name, arguments.RequiredText("fleet", "the fleet whose VMs are counted"));
  TRY(OfOption("fleet", CheckFleetName(spec.name)));
  TRY_ASSIGN(const std::string flavor, arguments.RequiredText("flavor", "the flavor of its VMs"));
  TRY_ASSIGN(spec.flavor, OfOption("flavor", cloud->FindFlavor(flavor)));
  TRY_ASSIGN(const std::string image, arguments.RequiredText("image", "the image of its VMs"));
  TRY_ASSIGN(spec.image_id, OfOption("image", cloud->FindImage(image)));
  spec.network = arguments.Text("network").value_or("auto");
  spec.zone = arguments.Text("zone").value_or("");
  spec.host = arguments.Text("to").value_or("");
  if (!spec.host.empty() && cloud->session().compute_minor() < 74) {
    return Fail(ErrorCode::kFailedPrecondition,
                "--to: Nova makes VMs on a named host from microversion 2.74 on; it has 2.{}",
                cloud->session().compute_minor());
  }
  return spec;
}

std::string FleetText(const VmFleetPlan& plan, int wanted) {
  std::string text = fmt::format("{} of {} ready", plan.ready, wanted);
  const auto add = [&](int count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(plan.starting, "starting");
  add(plan.going, "going");
  add(plan.waits, "waited for");
  add(plan.doubled, "doubled");
  add(plan.failed, "failed");
  add(plan.without_room, "without room on any host");
  if (!plan.last_fault.empty() && plan.ready < wanted)
    text += fmt::format(" ({})", OneLine(plan.last_fault, 120));
  return text;
}

Result<ExitStatus> ScaleFleet(const Arguments& arguments, const Session& session,
                              OpenStackVms* cloud) {
  if (arguments.operands().size() != 2) return Invalid("scale: expected the number of VMs");
  const std::string& number = arguments.operands()[1];
  int count = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (error != std::errc{} || end != number.data() + number.size() || count < 0 || count > kVmsMax)
    return Invalid("scale: expected {}, found `{}`",
                   RangeInWords("an integer", int64_t{0}, int64_t{kVmsMax}), OneLine(number, 40));
  TRY_ASSIGN(VmFleetSpec spec, FleetOf(arguments, cloud));
  const SystemClock clock;
  const bool applies = arguments.Has("apply");
  VmFleetLimits limits{.vms_max = kVmsMax};
  if (!applies) limits.steps_per_turn = 2 * kVmsMax;  // All of them are shown.
  VmFleet fleet(std::move(spec), limits, &clock);
  if (!applies) {
    TRY_ASSIGN(const VmFleetPlan plan, fleet.Look(cloud, count));
    TRY(Print(FleetText(plan, count) + "\n\n"));
    TRY(ShowRequests(plan.steps, *cloud, "the fleet is as wanted"));
    return ExitStatus::kDone;
  }
  VmFleetPlan last;
  TRY_ASSIGN(const ExitStatus status,
             TurnUntilSettled(session, "scale", arguments,
                              [&](double* fraction, std::string* text) -> Result<bool> {
                                TRY_ASSIGN(last, fleet.Look(cloud, count));
                                *text = FleetText(last, count);
                                *fraction =
                                    count == 0 ? 0 : std::min(1.0, 1.0 * last.ready / count);
                                TRY(fleet.Carry(cloud, last));
                                if (last.without_room > 0 && last.steps.empty() &&
                                    last.starting + last.waits + last.going == 0) {
                                  return Fail(ErrorCode::kFailedPrecondition, "{}", *text);
                                }
                                return last.is_settled(count);
                              }));
  TRY(Print(FleetText(last, count) + "\n"));
  return status;
}

Result<ExitStatus> CarryMoves(const Arguments& arguments, const Session& session,
                              OpenStackVms* cloud, VmMoves* moves, std::string_view title) {
  VmMovePlan last;
  TRY_ASSIGN(const ExitStatus status,
             TurnUntilSettled(session, title, arguments,
                              [&](double* fraction, std::string* text) -> Result<bool> {
                                TRY_ASSIGN(last, moves->Look(cloud));
                                *text = fmt::format("{} moved, {} moving, {} waiting", last.moved,
                                                    last.moving, last.waiting);
                                const int all = last.moved + last.moving + last.waiting;
                                *fraction = all == 0 ? 1 : 1.0 * last.moved / all;
                                TRY(moves->Carry(cloud, last));
                                return last.is_settled();
                              }));
  std::string text;
  for (const std::string& one : last.given_up) text += fmt::format("given up: {}\n", one);
  TRY(Print(fmt::format("{}{} moved, {} given up\n", text, last.moved, last.given_up.size())));
  if (status == ExitStatus::kDone && !last.given_up.empty()) return ExitStatus::kFailed;
  return status;
}

Result<const Vm*> VmNamed(const std::vector<Vm>& vms, std::string_view name) {
  const Vm* found = nullptr;
  for (const Vm& vm : vms) {
    if (vm.id == name) return &vm;
    if (vm.name != name || vm.IsGoing()) continue;
    if (found != nullptr)
      return Invalid("several VMs are called `{}`; name one by its id", OneLine(name, 100));
    found = &vm;
  }
  if (found != nullptr) return found;
  return Fail(ErrorCode::kNotFound, "no VM `{}` in this project", OneLine(name, 100));
}

Result<VmHost> HostNamed(OpenStackVms* cloud, std::string_view name) {
  TRY_ASSIGN(const std::vector<VmHost> hosts, cloud->Hosts());
  std::vector<std::string> known;
  for (const VmHost& host : hosts) {
    if (host.name == name) return host;
    known.push_back(host.name);
  }
  return Fail(ErrorCode::kNotFound, "no host `{}`; there are {}", OneLine(name, 100),
              OneLine(fmt::format("{}", fmt::join(known, ", ")), 300));
}

Result<ExitStatus> MoveVm(const Arguments& arguments, const Session& session, OpenStackVms* cloud) {
  if (arguments.operands().size() != 2) return Invalid("move: expected the VM's name or id");
  TRY_ASSIGN(const std::vector<Vm> vms, cloud->List());
  TRY_ASSIGN(const Vm* vm, VmNamed(vms, arguments.operands()[1]));
  const std::string to = arguments.Text("to").value_or("");
  if (vm->host.empty()) {
    return Fail(ErrorCode::kFailedPrecondition, "{}: its host is not known: {}", vm->name,
                vm->status == "ACTIVE" ? "only administrators see and choose hosts"
                                       : "its status is " + OneLine(vm->status, 20));
  }
  if (!to.empty()) TRY(OfOption("to", HostNamed(cloud, to)));
  if (to == vm->host)
    return Fail(ErrorCode::kFailedPrecondition, "{} is on {} already", vm->name, to);
  TRY_ASSIGN(const std::string left, ToConfirmFrom(cloud, *vm));
  VmMoves moves({{.vm_id = vm->id,
                  .from = left.empty() ? vm->host : left,
                  .to = to,
                  .is_cold = arguments.Has("cold")}},
                {});
  if (!arguments.Has("apply")) {
    const VmMovePlan plan = moves.Plan(vms);
    for (const std::string& why : plan.given_up)
      return Fail(ErrorCode::kFailedPrecondition, "{}", why);
    TRY(ShowRequests(plan.steps, *cloud, "it is being moved"));
    return ExitStatus::kDone;
  }
  return CarryMoves(arguments, session, cloud, &moves, "move");
}

// How many of these VMs no other host has room for.
Result<int64_t> WithoutRoom(OpenStackVms* cloud, const std::vector<const Vm*>& leaving,
                            const VmHost& host) {
  std::map<std::string, int64_t> by_flavor;
  for (const Vm* vm : leaving) ++by_flavor[vm->flavor];
  int64_t without = 0;
  for (const auto& [name, count] : by_flavor) {
    TRY_ASSIGN(const VmFlavor flavor, cloud->FindFlavor(name));
    TRY_ASSIGN(const auto room, cloud->Room(flavor.needs, host.zone));
    if (!room) continue;
    int64_t more = 0;
    for (const VmRoom& one : *room) more += one.host == host.name ? 0 : one.vms;
    without += std::max<int64_t>(0, count - more);
  }
  return without;
}

Result<ExitStatus> DrainHost(const Arguments& arguments, const Session& session,
                             OpenStackVms* cloud) {
  if (arguments.operands().size() != 2) return Invalid("drain: expected the name of a host");
  TRY_ASSIGN(const VmHost host, HostNamed(cloud, arguments.operands()[1]));
  if (arguments.Has("to")) TRY(OfOption("to", HostNamed(cloud, *arguments.Text("to"))));
  TRY_ASSIGN(const std::vector<Vm> vms, cloud->List());
  std::vector<const Vm*> leaving;
  std::vector<VmMoveGoal> goals;
  for (const Vm& vm : vms) {
    if (vm.IsGoing()) continue;
    TRY_ASSIGN(const std::string left, ToConfirmFrom(cloud, vm));
    if (vm.host != host.name && left != host.name) continue;
    if (vm.host == host.name) leaving.push_back(&vm);
    goals.push_back({.vm_id = vm.id, .from = host.name, .to = arguments.Text("to").value_or("")});
  }
  TRY_ASSIGN(const int64_t without, WithoutRoom(cloud, leaving, host));
  if (without > 0) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{} of the {} of {} have no room on another host of zone {}; nothing was changed",
                without, Counted(static_cast<int64_t>(leaving.size()), "VM"), host.name, host.zone);
  }
  VmMoves moves(std::move(goals), {});
  const VmRequest disable = DisableRequest(host, kDrainReason);
  if (!arguments.Has("apply")) {
    std::vector<VmMoveStep> steps = moves.Plan(vms).steps;
    if (host.is_enabled)
      steps.insert(steps.begin(), {.vm = "", .from = host.name, .request = disable});
    TRY(Print(fmt::format("{} on {}; not more than 4 move at once\n\n",
                          Counted(static_cast<int64_t>(leaving.size()), "VM"), host.name)));
    TRY(ShowRequests(steps, *cloud, "no VM is on it, and it takes no new ones"));
    return ExitStatus::kDone;
  }
  if (host.is_enabled) TRY(cloud->Send(disable));
  Say(session, "{} takes no new VMs; `rudderfish vms resume {}` ends that", host.name, host.name);
  return CarryMoves(arguments, session, cloud, &moves, "drain");
}

Result<ExitStatus> ResumeHost(const Arguments& arguments, OpenStackVms* cloud) {
  if (arguments.operands().size() != 2) return Invalid("resume: expected the name of a host");
  TRY_ASSIGN(const VmHost host, HostNamed(cloud, arguments.operands()[1]));
  if (!host.is_enabled && host.why_disabled != kDrainReason) {
    return Fail(ErrorCode::kFailedPrecondition,
                "{} was not disabled by `vms drain`; the reason is `{}`", host.name,
                OneLine(host.why_disabled, 200));
  }
  std::vector<VmMoveStep> steps;
  if (!host.is_enabled) steps.push_back({.vm = "", .from = "", .request = EnableRequest(host)});
  if (!arguments.Has("apply")) {
    TRY(ShowRequests(steps, *cloud, "it takes new VMs already"));
    return ExitStatus::kDone;
  }
  for (const VmMoveStep& step : steps) TRY(cloud->Send(step.request));
  TRY(Print(fmt::format("{} takes new VMs\n", host.name)));
  return ExitStatus::kDone;
}

Result<ExitStatus> RunVms(const Arguments& arguments, const Session& session) {
  constexpr std::string_view kVerbs[] = {"list", "hosts", "scale", "move", "drain", "resume"};
  TRY_ASSIGN(const int verb, ChoiceOf(arguments.operands()[0], kVerbs));
  if (verb < 2 && arguments.operands().size() > 1)
    return Invalid("{}: `{}` is one word too many", kVerbs[verb], arguments.operands()[1]);
  TRY_ASSIGN(const VmsCloud cloud, OpenCloud(arguments));
  switch (verb) {
    case 0:
      return ListVms(arguments, cloud.vms.get());
    case 1:
      return ListHosts(arguments, cloud.vms.get());
    case 2:
      return ScaleFleet(arguments, session, cloud.vms.get());
    case 3:
      return MoveVm(arguments, session, cloud.vms.get());
    case 4:
      return DrainHost(arguments, session, cloud.vms.get());
    default:
      return ResumeHost(arguments, cloud.vms.get());
  }
}

}  // namespace

CommandSpec VmsCommand() {
  return {
      .name = "vms",
      .summary = "List, scale, move and drain virtual machines of an OpenStack project",
      .operands = {{.name = "list|hosts|scale|move|drain|resume"},
                   {.name = "N|VM|HOST", .min = 0, .max = 1}},
      .options = {{"--cloud", "NAME", "entry of clouds.yaml (default $OS_CLOUD, or the only one)"},
                  {"--clouds", "FILE",
                   "clouds.yaml (default $OS_CLIENT_CONFIG_FILE, ./clouds.yaml, "
                   "~/.config/openstack/clouds.yaml, /etc/openstack/clouds.yaml)"},
                  {"--fleet", "NAME", "VMs that `scale` counts and marks; `list` shows only these"},
                  {"--flavor", "NAME", "flavor of new VMs; `hosts` shows room for it"},
                  {"--image", "NAME", "image of new VMs, by name or id"},
                  {"--network", "none|auto|ID", "network of new VMs (default auto)"},
                  {"--zone", "NAME", "availability zone of new VMs (default: the cloud's own)"},
                  {"--to", "HOST", "host of new or moved VMs (default: Nova's scheduler chooses)"},
                  {"--cold", "", "move a running VM by shutting it down"},
                  {"--apply", "", "send the requests (default: print them)"},
                  {"--timeout", "TIME", "how long to try (default 10min)"},
                  {"-o,--output", "table|json",
                   "output format of `list` and `hosts` (default: table)"}},
      .details =
          "`scale N` makes or deletes VMs until the fleet has N that are ready. Only VMs with the "
          "fleet's mark are touched. Answers that are lost, failed VMs and interruptions leave "
          "neither a VM too many nor one too few. `drain` disables a host and moves its VMs: "
          "running ones live, others cold. Placement is asked first whether other hosts have "
          "room. Without --apply the exact requests are printed and nothing is sent "
          "(docs/openstack.md).",
      .examples = {"vms hosts --cloud eu --flavor small",
                   "vms scale 3 --cloud eu --fleet shop --flavor small --image debian --zone eu-1",
                   "vms drain compute-7 --cloud eu --apply"},
      .run = RunVms};
}

}  // namespace rudderfish
