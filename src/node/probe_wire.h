// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What agents send to each other over UDP: a request, and the same number back with the name of
// the node that answers, so that peers found by address alone get their names.
//
//   bytes 0..3  "RFq1" a request, "RFa1" an answer
//         4..11 a number, which the answer repeats
//        12     length of the name, 0 in requests; 13.. the name, then zeros
//
// Both have kProbeBytes: an agent cannot be used to send anyone more than was sent to it, nor does
// it answer an answer.

namespace rudderfish {

inline constexpr size_t kProbeBytes = 128;
inline constexpr size_t kProbeNameMax = kProbeBytes - 13;

std::string ProbeRequest(uint64_t number);

// The number of a request; nothing: it is none.
std::optional<uint64_t> ReadProbeRequest(std::string_view bytes);

// Of a longer name its beginning.
std::string ProbeAnswer(uint64_t number, std::string_view name);

struct ProbeAnswered {
  uint64_t number = 0;
  std::string name;  // Of printable ASCII without quotes and backslashes; else empty.
};
std::optional<ProbeAnswered> ReadProbeAnswer(std::string_view bytes);

// The same number over ICMP: an echo request of the kind 8 (128 for IPv6), whose checksum and
// identity the system fills in, and the number in its answer, kind 0 (129).
std::string PingRequest(uint64_t number, int family);
std::optional<uint64_t> ReadPingAnswer(std::string_view bytes, int family);

}  // namespace rudderfish
