// SPDX-License-Identifier: Apache-2.0
#include "node/probe_wire.h"

#include <sys/socket.h>

#include <algorithm>

namespace rudderfish {
namespace {

constexpr std::string_view kRequest = "RFq1", kAnswer = "RFa1";
constexpr size_t kNumberAt = 4, kLengthAt = 12, kNameAt = 13;
constexpr size_t kPingHeader = 8, kPingBytes = 64;

std::string Packet(std::string_view kind, uint64_t number) {
  std::string bytes(kProbeBytes, '\0');
  std::ranges::copy(kind, bytes.begin());
  for (size_t i = 0; i < 8; ++i) bytes[kNumberAt + i] = static_cast<char>(number >> (8 * i));
  return bytes;
}

uint64_t NumberAt(std::string_view bytes, size_t at) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8; ++i)
    number |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return number;
}

bool IsNameLetter(char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

std::string ProbeRequest(uint64_t number) { return Packet(kRequest, number); }

std::optional<uint64_t> ReadProbeRequest(std::string_view bytes) {
  if (bytes.size() != kProbeBytes || !bytes.starts_with(kRequest)) return std::nullopt;
  return NumberAt(bytes, kNumberAt);
}

std::string ProbeAnswer(uint64_t number, std::string_view name) {
  std::string bytes = Packet(kAnswer, number);
  name = name.substr(0, kProbeNameMax);
  bytes[kLengthAt] = static_cast<char>(name.size());
  std::ranges::copy(name, bytes.begin() + kNameAt);
  return bytes;
}

std::optional<ProbeAnswered> ReadProbeAnswer(std::string_view bytes) {
  if (bytes.size() != kProbeBytes || !bytes.starts_with(kAnswer)) return std::nullopt;
  const size_t length = static_cast<unsigned char>(bytes[kLengthAt]);
  if (length > kProbeNameMax) return std::nullopt;
  ProbeAnswered answered{.number = NumberAt(bytes, kNumberAt),
                         .name = std::string(bytes.substr(kNameAt, length))};
  if (!std::ranges::all_of(answered.name, IsNameLetter)) answered.name.clear();
  return answered;
}

std::string PingRequest(uint64_t number, int family) {
  std::string bytes(kPingBytes, '\0');
  bytes[0] = static_cast<char>(family == AF_INET6 ? 128 : 8);
  bytes[6] = static_cast<char>(number >> 8);  // Its sequence number, for packet captures.
  bytes[7] = static_cast<char>(number);
  for (size_t i = 0; i < 8; ++i) bytes[kPingHeader + i] = static_cast<char>(number >> (8 * i));
  return bytes;
}

std::optional<uint64_t> ReadPingAnswer(std::string_view bytes, int family) {
  const char kind = static_cast<char>(family == AF_INET6 ? 129 : 0);
  if (bytes.size() != kPingBytes || bytes[0] != kind || bytes[1] != 0) return std::nullopt;
  return NumberAt(bytes, kPingHeader);
}

}  // namespace rudderfish
