// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

// A cluster of the testbed (docs/testbed.md) for the tests of one program: recreated at the start,
// whatever an interrupted run has left, and taken down at the end. Steps that fail end the program.

namespace rudderfish::testing {

struct Output {
  int status = 0;
  std::string out;
  std::string err;
};

// Runs a program, with `input` on its standard input.
Output Run(const std::vector<std::string>& words, const std::string& input = "");

class Testbed {
 public:
  // What this machine lacks to have one; empty if nothing.
  static std::string WhyNot();

  Testbed(std::string name, const std::vector<std::string>& layout);
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  const std::filesystem::path& kubeconfig() const { return kubeconfig_; }
  std::filesystem::path folder() const { return kubeconfig_.parent_path(); }

  std::string Do(const std::string& command, const std::vector<std::string>& words = {}) const;
  std::string Kubectl(const std::vector<std::string>& words, const std::string& input = "") const;

  // SIGKILL, SIGSTOP, ... to the process of this cluster whose command has `part`.
  void Signal(const std::string& part, int signal) const;

 private:
  std::string name_;
  std::filesystem::path kubeconfig_;
};

}  // namespace rudderfish::testing
