// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "policy/policy_table.h"

// Scripts that complete command lines in three shells, written from the list of commands.

namespace rudderfish {
namespace {

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

struct OptionNamesOf {
  std::string_view letter;  // Without its dash; empty if there is none.
  std::string_view word;    // Without its dashes.
};

OptionNamesOf NamesOf(const OptionSpec& option) {
  const size_t comma = option.names.find(',');
  return {.letter = comma == std::string_view::npos ? std::string_view{}
                                                    : option.names.substr(1, comma - 1),
          .word = option.names.substr(option.names.rfind("--") + 2)};
}

// The words that can be given, if there is a list of them.
std::string WordsOf(std::string_view value) {
  if (value.starts_with("POLICY")) return fmt::format("{}", fmt::join(PolicyNames(), " "));
  if (value.find('|') == std::string_view::npos) return {};
  return fmt::format("{}", fmt::join(Alternatives(value), " "));
}

// Whether a file may stand there.
bool NamesAFile(std::string_view value) {
  for (const std::string_view kind : {"FILE", "FOLDER", "RUN", "POLICY"}) {
    if (value.find(kind) != std::string_view::npos) return true;
  }
  return false;
}

std::string OperandWords(const CommandSpec& command) {
  if (command.name == "help") return fmt::format("{}", fmt::join(CommandNames(), " "));
  if (command.operands.empty()) return {};
  const std::string_view first = command.operands[0].name;
  const bool is_a_word = std::ranges::all_of(first, [](char c) { return c >= 'a' && c <= 'z'; });
  return is_a_word ? std::string(first) : WordsOf(first);
}

std::vector<OptionSpec> OptionsOf(const CommandSpec& command) {
  std::vector<OptionSpec> options = command.options;
  options.insert(options.end(), CommonOptions().begin(), CommonOptions().end());
  return options;
}

// Within single quotes of a shell.
std::string Quoted(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted;
}

std::string BashScript() {
  std::string values, options, operands;
  for (const CommandSpec& command : Commands()) {
    for (const OptionSpec& option : OptionsOf(command)) {
      const OptionNamesOf spelled = NamesOf(option);
      const std::string given = WordsOf(option.value);
      if (given.empty()) continue;
      const std::string letter =
          spelled.letter.empty() ? "" : fmt::format("\"{} -{}\" | ", command.name, spelled.letter);
      values += fmt::format("    {}\"{} --{}\") words=\"{}\"{} ;;\n", letter, command.name,
                            spelled.word, given, NamesAFile(option.value) ? " files=1" : "");
    }
    options += fmt::format("      {}) words=\"--{}\" ;;\n", command.name,
                           fmt::join(OptionNames(command), " --"));
    if (const std::string given = OperandWords(command); !given.empty()) {
      operands += fmt::format("      {}) words=\"{}\" ;;\n", command.name, given);
    }
  }
  return fmt::format(
      R"(# Completion of rudderfish for bash:  source <(rudderfish completion bash)
_rudderfish() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words="" files="" before=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{}" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  if [ -n "$words" ]; then
    [[ $word == *,* ]] && before=${{word%,*}},
    COMPREPLY=($(compgen -P "$before" -W "$words" -- "${{word##*,}}")
               ${{files:+$(compgen -f -- "$word")}})
  elif [[ $word == -* ]]; then
    case "${{COMP_WORDS[1]}}" in
{}    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    case "${{COMP_WORDS[1]}}" in
{}    esac
    [ "$COMP_CWORD" -eq 2 ] && [ -n "$words" ] || files=1
    COMPREPLY=($(compgen -W "$words" -- "$word") ${{files:+$(compgen -f -- "$word")}})
  fi
}}
complete -o filenames -F _rudderfish rudderfish
)",
      fmt::join(CommandNames(), " "), values, options, operands);
}

std::string ZshArgument(const OptionSpec& option) {
  const OptionNamesOf spelled = NamesOf(option);
  std::string help;
  for (const char c : Quoted(option.help)) {
    if (c == '[' || c == ']' || c == ':') help += '\\';
    help += c;
  }
  const std::string words = WordsOf(option.value);
  std::string value = option.value.empty() ? "" : ":value:";
  if (!words.empty() && NamesAFile(option.value)) {
    value += fmt::format(" _rudderfish_either {}", words);
  } else if (!words.empty()) {
    value += fmt::format("({})", words);
  } else if (NamesAFile(option.value)) {
    value += "_files";
  }
  if (spelled.letter.empty()) return fmt::format("'--{}[{}]{}'", spelled.word, help, value);
  return fmt::format("'(-{0} --{1})'{{-{0},--{1}}}'[{2}]{3}'", spelled.letter, spelled.word, help,
                     value);
}

std::string ZshScript() {
  std::string commands, cases;
  for (const CommandSpec& command : Commands()) {
    commands += fmt::format("    '{}:{}'\n", command.name, Quoted(command.summary));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionSpec& option : OptionsOf(command))
      cases += fmt::format(" \\\n        {}", ZshArgument(option));
    const std::string words = OperandWords(command);
    cases += words.empty() ? " \\\n        '*:file:_files' ;;\n"
                           : fmt::format(" \\\n        '1:what:({})' '*:file:_files' ;;\n", words);
  }
  return fmt::format(
      R"(#compdef rudderfish
# Completion of rudderfish for zsh:  rudderfish completion zsh > FOLDER-IN-FPATH/_rudderfish
_rudderfish_either() {{  # One of the words, or a file.
  compadd -- "$@"
  _files
}}
_rudderfish() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
if [ "$funcstack[1]" = _rudderfish ]; then
  _rudderfish "$@"
else
  compdef _rudderfish rudderfish
fi
)",
      commands, cases);
}

std::string FishScript() {
  std::string script =
      "# Completion of rudderfish for fish:  rudderfish completion fish | source\n";
  for (const CommandSpec& command : Commands()) {
    script += fmt::format("complete -c rudderfish -n __fish_use_subcommand -f -a {} -d '{}'\n",
                          command.name, Quoted(command.summary));
  }
  for (const CommandSpec& command : Commands()) {
    const std::string when =
        fmt::format("complete -c rudderfish -n '__fish_seen_subcommand_from {}'", command.name);
    if (const std::string words = OperandWords(command); !words.empty()) {
      // What follows the word may be a file.
      script +=
          fmt::format("{}{} -a '{}'\n", when, command.operands.size() > 1 ? "" : " -f", words);
    }
    for (const OptionSpec& option : OptionsOf(command)) {
      const OptionNamesOf spelled = NamesOf(option);
      const std::string words = WordsOf(option.value);
      std::string value = option.value.empty() ? "" : NamesAFile(option.value) ? " -r" : " -x";
      if (!words.empty()) value += fmt::format(" -a '{}'", words);
      script += fmt::format("{}{} -l {}{} -d '{}'\n", when,
                            spelled.letter.empty() ? "" : fmt::format(" -s {}", spelled.letter),
                            spelled.word, value, Quoted(option.help));
    }
  }
  return script;
}

Result<ExitStatus> RunCompletion(const Arguments& arguments, const Session&) {
  constexpr std::string (*kScripts[])() = {BashScript, ZshScript, FishScript};
  TRY_ASSIGN(const int shell, ChoiceOf(arguments.operands()[0], kShells));
  TRY(Print(kScripts[shell]()));
  return ExitStatus::kDone;
}

}  // namespace

CommandSpec CompletionCommand() {
  return {.name = "completion",
          .summary = "Print a shell completion script",
          .operands = {{.name = "bash|zsh|fish"}},
          .examples = {"completion bash > ~/.local/share/bash-completion/completions/rudderfish"},
          .run = RunCompletion};
}

}  // namespace rudderfish
