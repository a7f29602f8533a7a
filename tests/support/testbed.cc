// SPDX-License-Identifier: Apache-2.0
#include "tests/support/testbed.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "tests/support/source_path.h"

extern char** environ;

namespace rudderfish::testing {
namespace {

const std::string kProgram = SourcePath("testbed/testbed");

std::string TemporaryFile(const std::string& content) {
  char path[] = "/tmp/rudderfish-run-XXXXXX";
  const int file = mkstemp(path);
  CHECK_GE(file, 0);
  const ssize_t written = write(file, content.data(), content.size());
  CHECK_EQ(written, static_cast<ssize_t>(content.size()));
  close(file);
  return path;
}

}  // namespace

Output Run(const std::vector<std::string>& words, const std::string& input) {
  // Files, for pipes would have to be read and written in turns.
  const std::string in = TemporaryFile(input), out = TemporaryFile(""), err = TemporaryFile("");
  std::vector<std::string> copies = words;
  std::vector<char*> pointers;
  for (std::string& word : copies) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  pid_t process = -1;
  const int error = posix_spawnp(&process, pointers[0], &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  CHECK_EQ(error, 0);
  int status = 0;
  const pid_t ended = waitpid(process, &status, 0);
  CHECK_EQ(ended, process);
  Output output{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                ReadFile(out).value_or(""), ReadFile(err).value_or("")};
  for (const std::string& path : {in, out, err}) unlink(path.c_str());
  return output;
}

std::string Testbed::WhyNot() {
  if (geteuid() != 0) return "needs root";
  const Output check = Run({kProgram, "build", "--check"});
  if (check.status == 0) return "";
  return check.err.substr(0, check.err.find('\n'));
}

Testbed::Testbed(std::string name, const std::vector<std::string>& layout)
    : name_(std::move(name)) {
  Do("down");
  const std::string path = Do("up", layout);
  kubeconfig_ = path.substr(0, path.find('\n'));
}

Testbed::~Testbed() { Do("down"); }

std::string Testbed::Do(const std::string& command, const std::vector<std::string>& words) const {
  std::vector<std::string> all = {kProgram, command, "--name", name_};
  all.insert(all.end(), words.begin(), words.end());
  const Output output = Run(all);
  CHECK_EQ(output.err + std::to_string(output.status), output.err + "0");
  return output.out;
}

std::string Testbed::Kubectl(const std::vector<std::string>& words,
                             const std::string& input) const {
  std::vector<std::string> all = {kProgram, "kubectl", "--name", name_, "--"};
  all.insert(all.end(), words.begin(), words.end());
  const Output output = Run(all, input);
  CHECK_EQ(output.err + std::to_string(output.status), output.err + "0");
  return output.out;
}

void Testbed::Signal(const std::string& part, int signal) const {
  namespace fs = std::filesystem;
  int found = 0;
  for (const char* top : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
    const fs::path group = fs::path(top) / "rudderfish-testbed" / name_;
    std::error_code error;
    if (!fs::is_directory(group, error)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(group)) {
      if (entry.path().filename() != "cgroup.procs") continue;
      std::ifstream processes(entry.path());
      for (pid_t process = 0; processes >> process;) {
        std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
        std::stringstream command;
        command << file.rdbuf();
        const std::string text = command.str();
        if (text.find(part) == std::string::npos || text.starts_with("unshare") ||
            text.starts_with("nsenter")) {
          continue;
        }
        ++found;
        kill(process, signal);
      }
    }
    break;
  }
  CHECK_GE(found, 1);
}

}  // namespace rudderfish::testing
