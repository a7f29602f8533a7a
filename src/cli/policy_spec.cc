// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_spec.h"

#include <algorithm>
#include <system_error>

#include "cli/arguments.h"
#include "learn/run_folder.h"
#include "learn/run_tables.h"
#include "policy/registry.h"

namespace rudderfish {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSearches[] = {"lookahead", "best-of", "mixed"};

bool IsSearch(std::string_view word) {
  return std::find(std::begin(kSearches), std::end(kSearches), word) != std::end(kSearches);
}

// "best-of:16+runs/a" is "best-of:16+" and "runs/a".
struct Parts {
  std::string prefix;
  std::string target;
};

Parts PartsOf(const std::string& member) {
  const size_t plus = member.find('+');
  if (plus == std::string::npos || !IsSearch(member.substr(0, member.find_first_of(":+")))) {
    return {.target = member};
  }
  return {.prefix = member.substr(0, plus + 1), .target = member.substr(plus + 1)};
}

// "width=8" and "width=8+runs/a", but not "runs/a=b".
bool IsOption(std::string_view piece) {
  const size_t sign = piece.find_first_of("=/+");
  return sign != std::string_view::npos && piece[sign] == '=';
}

// At colons, but not at those of options: "lookahead:width=8:time=1ms+runs/a:runs/b" has two
// members.
Result<std::vector<std::string>> SplitMembers(std::string_view text) {
  std::error_code ignored;
  if (fs::exists(fs::path(text), ignored)) return std::vector{std::string(text)};
  TRY_ASSIGN(const std::vector<std::string> pieces, SplitList(text, ':'));
  std::vector<std::string> members;
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::string member = pieces[i];
    if (IsSearch(member) && i + 1 < pieces.size()) {
      member += ":" + pieces[++i];
      while (i + 1 < pieces.size() && pieces[i].find('+') == std::string::npos &&
             IsOption(pieces[i + 1])) {
        member += ":" + pieces[++i];
      }
    }
    members.push_back(std::move(member));
  }
  return members;
}

// The seeds of a run in place of their folder.
std::vector<std::string> WithSeeds(const std::vector<std::string>& members) {
  std::vector<std::string> expanded;
  std::string prefix;
  for (const std::string& member : members) {
    Parts parts = PartsOf(member);
    if (!parts.prefix.empty()) prefix = parts.prefix;
    const int seeds = SeedFolders(parts.target);
    if (seeds == 0) expanded.push_back(prefix + parts.target);
    for (int number = 1; number <= seeds; ++number) {
      expanded.push_back(prefix + RunPaths{parts.target}.seed(number).folder.string());
    }
  }
  return expanded;
}

Result<PolicySpec> ParseItem(std::string_view item) {
  const size_t sign = item.find_first_of(":+/=");
  const bool named = sign != std::string_view::npos && item[sign] == '=';
  if (named && sign == 0) return Invalid("`{}`: a name is missing before `=`", item);
  const std::string_view rest = named ? item.substr(sign + 1) : item;
  if (rest.empty()) return Invalid("`{}`: a policy is missing after `=`", item);
  Result<std::vector<std::string>> members = SplitMembers(rest);
  if (!members) return tl::unexpected(std::move(members).error());
  if (!named && members->size() > 1) {
    return Invalid("`{0}`: several runs under one head need a name, as in learned={0}", item);
  }
  return PolicySpec{.name = std::string(named ? item.substr(0, sign) : item),
                    .members = WithSeeds(*members)};
}

// "width=8", "time=10ms" and "width=8+runs/a:runs/b"; but neither "x=runs/8" nor "x=8" where there
// is a run called 8.
bool ReadsLikeAnOption(const std::string& item) {
  const size_t sign = item.find_first_of("=:+/");
  if (sign == std::string::npos || sign == 0 || item[sign] != '=') return false;
  const std::string value = item.substr(sign + 1, item.find_first_of(":+", sign) - sign - 1);
  constexpr std::string_view kDigits = "-0123456789.";
  const size_t unit = std::min(value.find_first_not_of(kDigits), value.size());
  std::error_code ignored;
  return unit > 0 && value.find_first_not_of("abcdefghijklmnopqrstuvwxyz", unit) == value.npos &&
         !fs::exists(fs::path(value), ignored);
}

// Whether options may follow: "x=lookahead:width=8", but not "lookahead:width=8+runs/a".
bool TakesOptions(const std::string& item) {
  for (const std::string_view heading : {"lookahead:", "mixed:"}) {
    const size_t head = item.rfind(heading);
    if (head == std::string::npos || item.find('+', head) != std::string::npos) continue;
    if (head == 0 || item[head - 1] == '=' || item[head - 1] == ':') return true;
  }
  return false;
}

// At commas, but not at those between options.
Result<std::vector<std::string>> SplitPolicies(std::string_view text) {
  TRY_ASSIGN(const std::vector<std::string> parts, SplitList(text, ','));
  std::vector<std::string> items;
  for (const std::string& part : parts) {
    if (!ReadsLikeAnOption(part)) {
      items.push_back(part);
    } else if (!items.empty() && TakesOptions(items.back())) {
      items.back() += "," + part;
    } else {
      return Invalid(
          "`{}` is neither a policy nor an option of one; options follow their policy, as in "
          "lookahead:width=8,patience=2+RUN",
          part);
    }
  }
  return items;
}

}  // namespace

Result<std::vector<PolicySpec>> ParsePolicySpecs(std::string_view text) {
  TRY_ASSIGN(const std::vector<std::string> items, SplitPolicies(text));
  std::vector<PolicySpec> specs;
  for (const std::string& item : items) {
    TRY_ASSIGN(PolicySpec spec, ParseItem(item));
    const bool taken = std::any_of(specs.begin(), specs.end(), [&](const PolicySpec& other) {
      return other.name == spec.name;
    });
    if (taken) {
      return Invalid("`{0}` is named twice; give one another name, as in other={0}", spec.name);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

Result<PolicySpec> ParsePolicySpec(std::string_view text) {
  TRY_ASSIGN(std::vector<PolicySpec> specs, ParsePolicySpecs(text));
  if (specs.size() > 1) return Invalid("expected one policy, found {}", specs.size());
  if (specs[0].members.size() > 1) {
    return Invalid("`{}` has {} training seeds; expected one, such as {}", specs[0].name,
                   specs[0].members.size(), specs[0].members[0]);
  }
  return std::move(specs[0]);
}

Result<PolicyGroup> MakePolicyGroup(const PolicySpec& spec, const Task& task) {
  PolicyGroup group{.name = spec.name};
  for (const std::string& member : spec.members) {
    TRY_ASSIGN(std::unique_ptr<Policy> policy, MakePolicy(member, task));
    group.training_seeds.push_back(std::move(policy));
  }
  return group;
}

std::vector<fs::path> RunsOf(const PolicySpec& spec) {
  std::vector<fs::path> runs;
  for (const std::string& member : spec.members) {
    std::error_code ignored;
    if (!fs::is_directory(member, ignored) || !HasRun(member)) return {};
    runs.emplace_back(member);
  }
  return runs;
}

Result<std::vector<LearningCurve>> LearningCurvesOf(const std::vector<PolicySpec>& specs) {
  std::vector<LearningCurve> curves;
  for (const PolicySpec& spec : specs) {
    LearningCurve curve{.name = spec.name};
    for (const fs::path& run : RunsOf(spec)) {
      TRY_ASSIGN(std::vector<CurvePoint> points, ReadLearningCurve(RunPaths{run}));
      if (!points.empty()) curve.runs.push_back(std::move(points));
    }
    if (!curve.runs.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace rudderfish
