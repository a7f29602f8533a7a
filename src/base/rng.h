// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

// The only source of chance in this project: Philox4x32-10, a counter-based generator (Salmon,
// Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11). Word i of a stream is
// a pure function of (seed, stream, substream, i), so results depend neither on the thread that
// draws nor on the platform, and a stopped run goes on from a saved position. Streams of one seed
// never overlap: (stream, substream) is enciphered by Philox, which is a bijection, into the key
// and the upper half of the counter. Distributions are our own, because those of the standard
// library differ between implementations. A value type of 40 bytes; one thread at a time.

namespace rudderfish {

// One block: ten rounds over a counter of four words, under a key of two.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  // Words by name: most of what tests compute is this, and a build for a sanitizer inlines nothing.
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c0;
    const uint64_t b = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(a);
    k0 += 0x9E3779B9;  // The golden ratio.
    k1 += 0xBB67AE85;  // sqrt(3) - 1.
  }
  return {c0, c1, c2, c3};
}

class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0, uint64_t substream = 0) {
    const auto block = Philox4x32({Low(stream), High(stream), Low(substream), High(substream)},
                                  {Low(seed), High(seed)});
    key_ = {block[0], block[1]};
    upper_ = {block[2], block[3]};
  }

  uint32_t Next32() {
    const uint32_t slot = static_cast<uint32_t>(position_) & 3;
    if (slot == 0) Fill();
    ++position_;
    return static_cast<uint32_t>(pairs_[slot >> 1] >> (32 * (slot & 1)));
  }

  // The next two words, the first one low.
  uint64_t Next64() {
    const uint32_t slot = static_cast<uint32_t>(position_) & 3;
    if ((slot & 1) == 0) {
      if (slot == 0) Fill();
      position_ += 2;
      return pairs_[slot >> 1];
    }
    const uint64_t low = Next32();
    return low | static_cast<uint64_t>(Next32()) << 32;
  }

  // In [0, 1), a multiple of 2^-53.
  double Uniform() { return static_cast<double>(Next64() >> 11) * 0x1p-53; }

  // In [low, high); `low` where the two are equal. REQUIRES: low <= high, both finite.
  double Uniform(double low, double high);

  // In [0, 1), a multiple of 2^-24.
  float UniformFloat() { return static_cast<float>(Next32() >> 8) * 0x1p-24F; }

  // In [0, n), each exactly as likely (Lemire: "Fast random integer generation in an interval",
  // 2019). REQUIRES: n > 0.
  uint32_t Below(uint32_t n) {
    uint64_t product = uint64_t{Next32()} * n;
    // Less than n; n = 0 goes there too, to be refused.
    if (static_cast<uint32_t>(product) <= n - 1) product = RejectBiased(product, n);
    return static_cast<uint32_t>(product >> 32);
  }

  // In [low, high], both included. REQUIRES: low <= high.
  int Between(int low, int high);

  // Mean 0, standard deviation 1, to the last bit the same everywhere. Takes one Next64, so that
  // positions stay predictable.
  double Normal();

  // Words drawn so far. Seek(position()) of an equal generator continues the same sequence.
  uint64_t position() const { return position_; }
  void Seek(uint64_t position) {
    position_ = position;
    if ((position & 3) != 0) Fill();
  }

 private:
  static constexpr uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static constexpr uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  void Fill() {
    const uint64_t block = position_ >> 2;
    const auto words = Philox4x32({Low(block), High(block), upper_[0], upper_[1]}, key_);
    pairs_ = {words[0] | uint64_t{words[1]} << 32, words[2] | uint64_t{words[3]} << 32};
  }

  uint64_t RejectBiased(uint64_t product, uint32_t n);

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> upper_;
  uint64_t position_ = 0;
  // The block of position_, valid unless position_ is a multiple of 4.
  std::array<uint64_t, 2> pairs_{};
};

}  // namespace rudderfish
