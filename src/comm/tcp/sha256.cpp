#include "comm/tcp/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace trireme::comm {
namespace {

constexpr std::size_t block_bytes = 64;
using Words = std::array<std::uint32_t, 8>;

constexpr Words initial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
constexpr std::array<std::uint32_t, 64> constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t word_at(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int index = 0; index < 4; ++index) word = word << 8 | std::to_integer<std::uint32_t>(bytes[index]);
  return word;
}

void add_block(Words& state, const std::byte* block) {
  std::array<std::uint32_t, 64> schedule{};
  for (std::size_t i = 0; i < 16; ++i) schedule[i] = word_at(block + 4 * i);
  for (std::size_t i = 16; i < schedule.size(); ++i) {
    const std::uint32_t before = schedule[i - 15];
    const std::uint32_t last = schedule[i - 2];
    schedule[i] = schedule[i - 16] + (std::rotr(before, 7) ^ std::rotr(before, 18) ^ before >> 3) + schedule[i - 7] +
                  (std::rotr(last, 17) ^ std::rotr(last, 19) ^ last >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + schedule[i];
    const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const Words mixed = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += mixed[i];
}

}  // namespace

Sha256 sha256(std::span<const std::byte> bytes) {
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  padded.push_back(std::byte{0x80});
  while (padded.size() % block_bytes != block_bytes - 8) padded.push_back(std::byte{0});
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(bytes.size());
  for (int shift = 56; shift >= 0; shift -= 8) padded.push_back(static_cast<std::byte>(bits >> shift));
  Words state = initial;
  for (std::size_t at = 0; at < padded.size(); at += block_bytes) add_block(state, padded.data() + at);
  Sha256 digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<std::byte>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Sha256 hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> bytes) {
  std::array<std::byte, block_bytes> block{};
  if (key.size() > block_bytes) {
    std::ranges::copy(sha256(key), block.begin());
  } else {
    std::ranges::copy(key, block.begin());
  }
  const auto masked = [&block](std::byte mask) {
    std::vector<std::byte> result(block.begin(), block.end());
    for (std::byte& one : result) one ^= mask;
    return result;
  };
  std::vector<std::byte> inner = masked(std::byte{0x36});
  inner.insert(inner.end(), bytes.begin(), bytes.end());
  std::vector<std::byte> outer = masked(std::byte{0x5c});
  const Sha256 digest = sha256(inner);
  outer.insert(outer.end(), digest.begin(), digest.end());
  return sha256(outer);
}

}  // namespace trireme::comm
