// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "cli/help.h"
#include "tests/support/plain_words.h"

namespace rudderfish {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(std::vector<std::string> words) {
  const Result<Invocation> invocation = ParseInvocation(std::move(words));
  EXPECT_FALSE(invocation);
  return invocation ? "" : invocation.error().message;
}

TEST(Program, OptionsAndOperandsReachTheCommand) {
  const Invocation invocation =
      ParseInvocation({"train", "a.yaml", "-d", "runs/a", "b.yaml", "--seed=7", "-q"}).value();
  EXPECT_EQ(invocation.command->name, "train");
  EXPECT_THAT(invocation.arguments.operands(), ElementsAre("a.yaml", "b.yaml"));
  EXPECT_EQ(invocation.arguments.Text("dir"), "runs/a");
  EXPECT_EQ(invocation.arguments.Text("seed"), "7");
  EXPECT_EQ(invocation.verbosity, Verbosity::kQuiet);
}

TEST(Program, CommonOptionsMayStandBeforeTheCommand) {
  EXPECT_EQ(ParseInvocation({"-v", "version"}).value().verbosity, Verbosity::kVerbose);
  EXPECT_TRUE(ParseInvocation({"--version"}).value().wants_version);
  EXPECT_TRUE(ParseInvocation({"-h"}).value().wants_help);
}

TEST(Program, CommandNamesMayBeOperandsOfACommand) {
  EXPECT_THAT(ParseInvocation({"inspect", "train"}).value().arguments.operands(),
              ElementsAre("train"));
  EXPECT_THAT(ParseInvocation({"help", "help"}).value().arguments.operands(), ElementsAre("help"));
}

TEST(Program, HelpIsGivenWhateverElseIsWrong) {
  const Invocation invocation = ParseInvocation({"evaluate", "--help", "--plicy", "x"}).value();
  EXPECT_TRUE(invocation.wants_help);
  EXPECT_EQ(invocation.command->name, "evaluate");
}

TEST(Program, UnknownWordsAreNamedWithTheNearestKnown) {
  EXPECT_EQ(Refusal({"trian"}), "unknown command `trian`; did you mean `train`?");
  EXPECT_EQ(Refusal({"evaluate", "a.yaml", "--polcy", "stay"}),
            "evaluate: unknown option `--polcy`; did you mean `--policy`?");
  EXPECT_EQ(Refusal({"evaluate", "a.yaml", "--polcy=stay"}),
            "evaluate: unknown option `--polcy`; did you mean `--policy`?");
  EXPECT_THAT(Refusal({"evaluate", "a.yaml", "-z"}), HasSubstr("unknown option `-z`"));
}

TEST(Program, ValuesThatAreMissingOrGivenTwiceAreRefused) {
  EXPECT_EQ(Refusal({"train", "a.yaml", "--seed"}), "train: --seed: its value is missing");
  EXPECT_THAT(Refusal({"train", "a.yaml", "--seed", "--threads", "2"}), HasSubstr("is missing"));
  EXPECT_THAT(Refusal({"train", "a.yaml", "--seed", "1", "--seed", "2"}), HasSubstr("twice"));
}

TEST(Program, OperandsThatAreMissingOrTooManyAreNamedWithTheUsage) {
  EXPECT_THAT(Refusal({"inspect"}), HasSubstr("FILE is missing; usage: rudderfish inspect FILE"));
  EXPECT_THAT(Refusal({"inspect", "a", "b"}), HasSubstr("`b` was not expected here"));
  EXPECT_THAT(Refusal({"version", "now"}), HasSubstr("`now`"));
}

TEST(Program, NegativeNumbersAreValues) {
  EXPECT_EQ(ParseInvocation({"train", "a.yaml", "--steps", "-5"}).value().arguments.Text("steps"),
            "-5");
}

TEST(Program, BadInputAndFailureHaveStatusesOfTheirOwn) {
  EXPECT_EQ(StatusOf(ErrorCode::kNotFound), ExitStatus::kBadInput);
  EXPECT_EQ(StatusOf(ErrorCode::kFailedPrecondition), ExitStatus::kBadInput);
  EXPECT_EQ(StatusOf(ErrorCode::kUnavailable), ExitStatus::kFailed);
  EXPECT_EQ(static_cast<int>(ExitStatus::kNotBetter), 3);
}

TEST(Program, HelpSetsEveryCommandApartFromWhatItDoes) {
  const std::string help = ProgramHelp();
  for (const CommandSpec& command : Commands()) {
    EXPECT_THAT(help, ContainsRegex(
                          fmt::format("\n  {}  +{}", command.name, command.summary.substr(0, 12))));
  }
}

// As kubectl's: a command is a verb ("Compare policies ..."), an option a noun or a verb, and not a
// fragment such as "of scaling: ...".
TEST(Program, HelpIsInPlainWords) {
  const std::regex fragment(
      R"(^(of|that|who|whose|which|in place of|at which|from which|by which)\b)");
  for (const CommandSpec& command : Commands()) {
    EXPECT_EQ(PrivateWordIn(CommandHelp(command)), "") << command.name;
    EXPECT_TRUE(isupper(static_cast<unsigned char>(command.summary.front()))) << command.summary;
    for (const OptionSpec& option : command.options) {
      EXPECT_FALSE(std::regex_search(std::string(option.help), fragment))
          << command.name << " " << option.names << ": " << option.help;
    }
  }
  EXPECT_EQ(PrivateWordIn(ProgramHelp()), "");
}

TEST(Program, HelpNamesEveryOptionOnceAndEveryExampleParses) {
  for (const CommandSpec& command : Commands()) {
    const std::string help = CommandHelp(command);
    std::set<std::string_view> names;
    for (const std::string_view name : OptionNames(command)) {
      EXPECT_TRUE(names.insert(name).second) << command.name << " --" << name;
      EXPECT_THAT(help, HasSubstr(fmt::format("--{}", name)));
    }
    EXPECT_FALSE(command.examples.empty()) << command.name;
    for (const std::string_view example : command.examples) {
      const std::vector<std::string> words =
          SplitList(example.substr(0, example.find(" > ")), ' ').value();
      EXPECT_TRUE(ParseInvocation(words)) << example;
    }
  }
}

}  // namespace
}  // namespace rudderfish
