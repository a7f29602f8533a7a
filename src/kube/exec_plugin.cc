// SPDX-License-Identifier: Apache-2.0
#include "kube/exec_plugin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <simdjson.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/one_line.h"
#include "kube/fields.h"
#include "kube/status.h"

extern char** environ;

namespace rudderfish::kube {
namespace {

constexpr size_t kOutputBytesMax = 1 << 20;

std::string Reason(int error) { return std::generic_category().message(error); }

// Ours, with what the kubeconfig adds and what the plugin is told.
std::vector<std::string> Environment(const ExecPlugin& plugin) {
  std::vector<std::string> variables;
  const auto set = [&](const std::string& name, const std::string& value) {
    const std::string start = name + "=";
    std::erase_if(variables, [&](const std::string& old) { return old.starts_with(start); });
    variables.push_back(start + value);
  };
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  for (const auto& [name, value] : plugin.environment) set(name, value);
  const std::string cluster =
      plugin.wants_cluster ? ",\"cluster\":" + plugin.cluster_as_json : std::string();
  set("KUBERNETES_EXEC_INFO",
      fmt::format(
          R"({{"apiVersion":"{}","kind":"ExecCredential","spec":{{"interactive":false{}}}}})",
          plugin.api_version, cluster));
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// 0 or an errno. The child holds nothing of ours but the writing end of the pipe.
int Spawn(const ExecPlugin& plugin, int output, pid_t* process) {
  std::vector<std::string> words = {plugin.command};
  words.insert(words.end(), plugin.arguments.begin(), plugin.arguments.end());
  std::vector<std::string> variables = Environment(plugin);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(process, plugin.command.c_str(), &files, &attributes,
                                 Pointers(&words).data(), Pointers(&variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

Result<ExecCredential> ParseExecCredential(std::string_view output, std::string_view api_version) {
  simdjson::dom::parser parser;
  simdjson::dom::element object, status;
  if (parser.parse(output.data(), output.size()).get(object) != simdjson::SUCCESS)
    return Invalid("its output is not JSON");
  if (TextOf(object, "kind") != "ExecCredential") return Invalid("its output is no ExecCredential");
  if (TextOf(object, "apiVersion") != api_version)
    return Invalid("its output is not of apiVersion {}", api_version);
  if (object["status"].get(status) != simdjson::SUCCESS || !status.is_object())
    return Invalid("its output has no status");
  ExecCredential credential;
  credential.token = TextOf(status, "token");
  credential.certificate = TextOf(status, "clientCertificateData");
  credential.key = TextOf(status, "clientKeyData");
  if (credential.token.empty() && credential.certificate.empty())
    return Invalid("its output has neither a token nor a client certificate");
  if (credential.certificate.empty() != credential.key.empty())
    return Invalid("its output has a client certificate without key, or a key without one");
  if (credential.token.find_first_of("\r\n") != std::string::npos)
    return Invalid("its token has more than one line");
  if (const std::string expires(TextOf(status, "expirationTimestamp")); !expires.empty()) {
    credential.expires = ParseDate(expires);
    if (!credential.expires) return Invalid("its expirationTimestamp is no date");
  }
  return credential;
}

Result<ExecRun> ExecRun::Start(const ExecPlugin& plugin, Instant deadline) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return Fail(ErrorCode::kUnavailable, "exec plugin {}: {}", plugin.command, Reason(errno));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  pid_t process = -1;
  const int error = Spawn(plugin, ends[1], &process);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return Fail(ErrorCode::kFailedPrecondition, "exec plugin {} cannot be started: {}{}{}",
                plugin.command, Reason(error), plugin.install_hint.empty() ? "" : ": ",
                OneLine(plugin.install_hint));
  }
  return ExecRun(plugin, process, ends[0], deadline);
}

ExecRun::ExecRun(const ExecPlugin& plugin, pid_t process, int output, Instant deadline)
    : command_(plugin.command),
      api_version_(plugin.api_version),
      process_(process),
      output_(output),
      deadline_(deadline) {}

ExecRun::ExecRun(ExecRun&& other) noexcept { *this = std::move(other); }

ExecRun& ExecRun::operator=(ExecRun&& other) noexcept {
  if (this == &other) return *this;
  Kill();
  command_ = std::move(other.command_);
  api_version_ = std::move(other.api_version_);
  process_ = std::exchange(other.process_, -1);
  output_ = std::exchange(other.output_, -1);
  deadline_ = other.deadline_;
  text_ = std::move(other.text_);
  return *this;
}

ExecRun::~ExecRun() { Kill(); }

void ExecRun::Kill() {
  if (output_ >= 0) close(std::exchange(output_, -1));
  if (process_ < 0) return;
  kill(-process_, SIGKILL);
  kill(process_, SIGKILL);  // Before it has a group of its own.
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

std::optional<Result<ExecCredential>> ExecRun::Check(Instant now) {
  char buffer[16 << 10];
  while (output_ >= 0) {
    const ssize_t count = read(output_, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return Finish();
    text_.append(buffer, count);
    if (text_.size() > kOutputBytesMax) {
      Kill();
      return Result<ExecCredential>(Invalid("exec plugin {}: it prints without end", command_));
    }
  }
  if (now < deadline_) return std::nullopt;
  Kill();
  return Result<ExecCredential>(
      Fail(ErrorCode::kDeadlineExceeded,
           "exec plugin {}: it gave no answer in time and was killed; run it by "
           "hand to see what it waits for",
           command_));
}

Result<ExecCredential> ExecRun::Finish() {
  // It has closed its output; one that lives on all the same is of no further use. Its status is
  // there at once, or what is killed here has not left by itself.
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 200 && ended == 0; ++i) {
    ended = waitpid(process_, &status, WNOHANG);
    if (ended == 0) usleep(1000);
  }
  if (ended == process_) {
    kill(-process_, SIGKILL);  // What it may have left running.
    process_ = -1;
  }
  Kill();
  if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    return Fail(ErrorCode::kFailedPrecondition,
                "exec plugin {}: it ended with status {}; run it by hand to see why", command_,
                WEXITSTATUS(status));
  }
  if (ended > 0 && WIFSIGNALED(status)) {
    return Fail(ErrorCode::kFailedPrecondition, "exec plugin {}: it was ended by signal {}",
                command_, WTERMSIG(status));
  }
  auto credential = ParseExecCredential(text_, api_version_);
  if (!credential)
    return Fail(credential.error().code, "exec plugin {}: {}", command_,
                credential.error().message);
  return credential;
}

}  // namespace rudderfish::kube
