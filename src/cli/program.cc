// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/suggest.h"
#include "cli/help.h"
#include "cli/terminal.h"

namespace rudderfish {
namespace {

constexpr int kOperandsMax = 100;

// An option as the parser fills it.
struct Slot {
  std::string name;  // Long, without dashes.
  bool is_switch = false;
  CLI::Option* option = nullptr;
  std::vector<std::string> values;
};

std::string_view LongName(std::string_view names) {
  const size_t dashes = names.rfind("--");
  return names.substr(dashes == std::string_view::npos ? 0 : dashes + 2);
}

// The parser of one command, or of what stands before the command.
class Level {
 public:
  Level(CLI::App* app, const std::vector<OptionSpec>& options, bool takes_operands) : app_(app) {
    app_->set_help_flag();  // Ours, so that it comes before all complaints.
    const size_t count = options.size() + CommonOptions().size();
    slots_.reserve(count);  // The parser holds pointers.
    for (const OptionSpec& spec : options) Add(spec);
    for (const OptionSpec& spec : CommonOptions()) Add(spec);
    if (takes_operands) app_->add_option("operands", operands_)->expected(0, kOperandsMax);
  }

  Level(const Level&) = delete;

  bool parsed() const { return app_->parsed(); }

  bool Given(std::string_view name) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.name == name && slot.option->count() > 0;
    });
  }

  Result<void> Fill(Arguments* arguments) const {
    for (const Slot& slot : slots_) {
      if (slot.option->count() == 0) continue;
      if (slot.is_switch) {
        arguments->SetOption(slot.name, "");
        continue;
      }
      if (slot.values.size() > 1) {
        return Invalid("--{}: given twice (`{}`, `{}`); leave one out", slot.name, slot.values[0],
                       slot.values[1]);
      }
      if (slot.values[0].starts_with("--")) {
        return Invalid("--{}: its value is missing (`{}` follows)", slot.name, slot.values[0]);
      }
      arguments->SetOption(slot.name, slot.values[0]);
    }
    for (const std::string& operand : operands_) arguments->AddOperand(operand);
    return {};
  }

 private:
  void Add(const OptionSpec& spec) {
    slots_.push_back({.name = std::string(LongName(spec.names)), .is_switch = spec.value.empty()});
    Slot& slot = slots_.back();
    const std::string names(spec.names);
    if (slot.is_switch) {
      slot.option = app_->add_flag(names);
    } else {
      // Repeated, not greedy: what follows the value is an operand.
      slot.option = app_->add_option(names, slot.values)->allow_extra_args(false);
    }
  }

  CLI::App* app_;
  std::vector<Slot> slots_;
  std::vector<std::string> operands_;
};

Error UnknownOption(const CommandSpec* command, std::string_view word) {
  const std::string_view name = word.substr(0, word.find('='));
  std::vector<std::string> dashed;
  if (command != nullptr) {
    for (const std::string_view known : OptionNames(*command))
      dashed.push_back(fmt::format("--{}", known));
  }
  const std::vector<std::string_view> known(dashed.begin(), dashed.end());
  std::string nearest = DidYouMean(name, known);
  if (nearest.empty()) {
    nearest = fmt::format("; `rudderfish help{}{}` lists what there is",
                          command == nullptr ? "" : " ", command == nullptr ? "" : command->name);
  }
  return {ErrorCode::kInvalidArgument, fmt::format("unknown option `{}`{}", name, nearest)};
}

// What the parser's exception means, in our words.
Error Explain(const CLI::App& app, const CommandSpec* command, const CLI::ParseError& error) {
  for (const std::string& word : app.remaining(true)) {
    if (word.size() > 1 && word[0] == '-' && word != "--") return UnknownOption(command, word);
  }
  const std::vector<std::string> left = app.remaining(true);
  if (command == nullptr && !left.empty()) {
    const auto known = CommandNamed(left[0]);
    if (!known) return known.error();
  }
  if (!left.empty()) {
    return {ErrorCode::kInvalidArgument, fmt::format("`{}` was not expected here", left[0])};
  }
  const std::string text = error.what();  // "--seed: 1 required TEXT missing"
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: its value is missing", text.substr(0, text.find(':')))};
  }
  return {ErrorCode::kInvalidArgument, text};
}

std::string UsageOfOperands(const CommandSpec& command) {
  return fmt::format("usage: rudderfish {}", UsageLine(command));
}

Result<void> CheckOperands(const CommandSpec& command, const std::vector<std::string>& operands) {
  size_t least = 0, most = 0;
  std::string_view missing;
  for (const OperandSpec& spec : command.operands) {
    least += spec.min;
    most += spec.max;
    if (missing.empty() && operands.size() < least) missing = spec.name;
  }
  if (!missing.empty()) return Invalid("{} is missing; {}", missing, UsageOfOperands(command));
  if (operands.size() > most) {
    return Invalid("`{}` was not expected here; {}", operands[most], UsageOfOperands(command));
  }
  return {};
}

Verbosity VerbosityOf(const Level& before, const Level* command) {
  const auto given = [&](std::string_view name) {
    return before.Given(name) || (command != nullptr && command->Given(name));
  };
  if (given("quiet")) return Verbosity::kQuiet;
  return given("verbose") ? Verbosity::kVerbose : Verbosity::kNormal;
}

tl::unexpected<Error> Within(const CommandSpec* command, Error error) {
  if (command != nullptr) error.message = fmt::format("{}: {}", command->name, error.message);
  return tl::unexpected(std::move(error));
}

}  // namespace

Result<Invocation> ParseInvocation(std::vector<std::string> words) {
  CLI::App app;
  app.require_subcommand(0, 1);
  const std::vector<OptionSpec> only_before{{"--version", "", ""}};
  const Level before(&app, only_before, false);
  std::deque<Level> levels;  // Never moved: the parser holds pointers.
  for (const CommandSpec& command : Commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name));
    levels.emplace_back(sub, command.options, !command.operands.empty());
  }
  const auto parsed = [&] {
    const auto found = std::find_if(levels.begin(), levels.end(),
                                    [](const Level& level) { return level.parsed(); });
    return static_cast<size_t>(found - levels.begin());
  };

  Invocation invocation;
  std::reverse(words.begin(), words.end());  // As CLI11 takes them.
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    const size_t at = parsed();
    invocation.command = at < levels.size() ? &Commands()[at] : nullptr;
    const bool help = before.Given("help") || (at < levels.size() && levels[at].Given("help"));
    if (!help) return Within(invocation.command, Explain(app, invocation.command, error));
  }
  const size_t at = parsed();
  const Level* level = at < levels.size() ? &levels[at] : nullptr;
  invocation.command = level != nullptr ? &Commands()[at] : nullptr;
  invocation.verbosity = VerbosityOf(before, level);
  invocation.wants_help = before.Given("help") || (level != nullptr && level->Given("help"));
  invocation.wants_version = before.Given("version");
  if (level == nullptr || invocation.wants_help || invocation.wants_version) return invocation;
  if (auto filled = level->Fill(&invocation.arguments); !filled) {
    return Within(invocation.command, std::move(filled).error());
  }
  if (auto checked = CheckOperands(*invocation.command, invocation.arguments.operands());
      !checked) {
    return Within(invocation.command, std::move(checked).error());
  }
  return invocation;
}

namespace {

std::string TypedLine(const std::vector<std::string>& words) {
  std::string line = "rudderfish";
  for (const std::string& word : words) line += " " + ShellWord(word);
  return line;
}

Result<ExitStatus> Dispatch(const Invocation& invocation, const Session& session) {
  if (invocation.wants_version) return VersionCommand().run(invocation.arguments, session);
  if (invocation.wants_help) {
    TRY(Print(invocation.command == nullptr ? ProgramHelp() : CommandHelp(*invocation.command)));
    return ExitStatus::kDone;
  }
  if (invocation.command == nullptr) {
    std::fputs(ProgramHelp().c_str(), stderr);
    return ExitStatus::kBadInput;
  }
  Result<ExitStatus> status = invocation.command->run(invocation.arguments, session);
  if (!status) return Within(invocation.command, std::move(status).error());
  return status;
}

LogLevel LogLevelOf(Verbosity verbosity) {
  switch (verbosity) {
    case Verbosity::kQuiet:
      return LogLevel::kError;
    case Verbosity::kNormal:
      return LogLevel::kInfo;
    case Verbosity::kVerbose:
      break;
  }
  return LogLevel::kDebug;
}

int Ended(ExitStatus status) { return static_cast<int>(status); }

int EndedBadly(const Error& error) {
  Complain(error.message);
  return Ended(StatusOf(error.code));
}

}  // namespace

ExitStatus StatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kFailedPrecondition:
    case ErrorCode::kCorruption:
      return ExitStatus::kBadInput;
    case ErrorCode::kConflict:
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kCancelled:
      break;
  }
  return ExitStatus::kFailed;
}

int RunProgram(std::vector<std::string> words, Instant start) {
  IgnoreBrokenPipes();
  try {
    const std::string line = TypedLine(words);
    const Result<Invocation> invocation = ParseInvocation(std::move(words));
    if (!invocation) return EndedBadly(invocation.error());
    const Session session{.verbosity = invocation->verbosity, .command_line = line, .start = start};
    SetLogLevel(LogLevelOf(session.verbosity));
    const Result<ExitStatus> status = Dispatch(*invocation, session);
    return status ? Ended(*status) : EndedBadly(status.error());
  } catch (const std::bad_alloc&) {
    Complain("out of memory; a smaller scenario, or fewer --threads or --episodes, needs less");
  } catch (const std::exception& error) {
    Complain(error.what());
  }
  return Ended(ExitStatus::kFailed);
}

}  // namespace rudderfish
