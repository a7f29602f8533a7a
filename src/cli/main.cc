// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  const rudderfish::Instant start = rudderfish::SystemClock().Now();
  return rudderfish::RunProgram(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                                start);
}
