// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "tests/support/fault_proxy.h"

// tests/support/fault_proxy.h as a program, for tests that are not in C++: prints its url, then its
// certificate, then a line "ready". Each line of its input is a fault to be begun, or "cut"; it is
// answered by "resets N answers N" once it is in force. Ends with its input.

int main(int argc, char** argv) {
  using rudderfish::testing::Fault;
  if (argc != 2) {
    std::cerr << "usage: fault_proxy PORT\n";
    return 2;
  }
  static const std::map<std::string, Fault> faults = {
      {"none", Fault::kNone},       {"tls-reset", Fault::kTlsReset},
      {"429", Fault::kTooMany},     {"500", Fault::kServerError},
      {"garbled", Fault::kGarbled}, {"partition", Fault::kPartition},
      {"unheard", Fault::kUnheard}};
  rudderfish::testing::FaultProxy proxy(std::atoi(argv[1]));
  std::cout << proxy.url() << "\n" << proxy.certificate() << "\nready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const auto fault = faults.find(line);
    if (fault != faults.end()) {
      proxy.Begin(fault->second);
    } else if (line == "cut") {
      proxy.Cut();
    } else {
      std::cerr << "fault_proxy: unknown fault " << line << "\n";
      return 2;
    }
    std::cout << "resets " << proxy.resets() << " answers " << proxy.answers() << std::endl;
  }
  return 0;
}
