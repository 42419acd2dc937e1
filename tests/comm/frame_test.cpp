#include "comm/tcp/frame.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "comm/tcp/frame_rules.hpp"
#include "comm/tcp/proof.hpp"

using namespace trireme;
using namespace trireme::comm;

namespace {

std::string hex_of(const Sha256& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte one : digest) {
    const auto value = std::to_integer<std::size_t>(one);
    text += {digits[value >> 4], digits[value & 15]};
  }
  return text;
}

std::string digest_of(const std::string& text) { return hex_of(sha256(bytes_of(text))); }
std::string hmac_of(const std::string& key, const std::string& text) {
  return hex_of(hmac_sha256(bytes_of(key), bytes_of(text)));
}

std::vector<std::byte> bytes(std::size_t count) { return std::vector<std::byte>(count, std::byte{7}); }

const MembersOfGroups groups{{5, {2, 0}}};

// Of a frame that rank 2 of 3 sends, unless another does.
std::string fault(const FrameHeader& header, std::size_t count, int rank = 2) {
  return std::string(fault_of({.header = header, .data = bytes(count)}, rank, 3, groups));
}

std::string fault_of_members(const std::vector<std::int32_t>& members, std::uint64_t group, int rank) {
  const auto data = std::as_bytes(std::span(members));
  const Frame frame{.header = {.kind = FrameKind::members, .group = group}, .data = {data.begin(), data.end()}};
  return std::string(fault_of(frame, rank, 3, groups));
}

}  // namespace

TEST_CASE("SHA-256 and HMAC give what FIPS 180-4 and RFC 4231 have") {
  CHECK(digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest_of(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(hmac_of("Jefe", "what do ya want for nothing?") == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac_of(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("a proof fits one secret, one pair of numbers, one end and one place") {
  const Challenges both{.of_hub = make_challenge(), .of_rank = make_challenge()};
  const Sha256 proof = proof_of("secret", Prover::rank, both, 1, 4);
  CHECK(are_equal(proof, proof_of("secret", Prover::rank, both, 1, 4)));
  CHECK_FALSE(are_equal(proof, proof_of("Secret", Prover::rank, both, 1, 4)));
  CHECK_FALSE(are_equal(proof, proof_of("secret", Prover::rank, both, 2, 4)));
  CHECK_FALSE(are_equal(proof, proof_of("secret", Prover::rank, both, 1, 5)));
  CHECK_FALSE(are_equal(proof, proof_of("secret", Prover::hub, both, 1, 4)));
  CHECK_FALSE(are_equal(proof, proof_of("secret", Prover::rank, {both.of_hub, make_challenge()}, 1, 4)));
  CHECK_FALSE(are_equal(proof, proof_of("secret", Prover::rank, {make_challenge(), both.of_rank}, 1, 4)));
  CHECK_FALSE(are_equal(proof, std::span(proof).first(31)));
}

TEST_CASE("frames are made of bytes however they come") {
  const std::vector<std::size_t> sizes{0, 1, 143, 144, 145, 70'000, 0};
  std::vector<std::byte> stream;
  for (const std::size_t size : sizes) {
    const auto frame = write_frame({.kind = FrameKind::letter, .tag = static_cast<std::int32_t>(size)}, bytes(size));
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (const std::size_t piece : {1, 7, 144, 65536, 1'000'000}) {
    FrameParser parser;
    std::vector<std::size_t> found;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      REQUIRE(parser.add(std::span(stream).subspan(at, std::min(piece, stream.size() - at))));
      while (const auto frame = parser.next()) {
        CHECK(frame->header.tag == static_cast<std::int32_t>(frame->data.size()));
        found.push_back(frame->data.size());
      }
    }
    CHECK(found == sizes);
  }
}

TEST_CASE("a parser takes no frame of another mark, and none that is too large") {
  auto other = write_frame({.kind = FrameKind::hello}, {});
  other[0] ^= std::byte{1};
  CHECK_FALSE(FrameParser().add(other));
  CHECK_FALSE(FrameParser(32).add(write_frame({.kind = FrameKind::hello}, bytes(33))));
  CHECK(FrameParser(32).add(write_frame({.kind = FrameKind::hello}, bytes(32))));
}

TEST_CASE("a call to the hub is one of a member, with the data it names") {
  FrameHeader call{.kind = FrameKind::call, .rank = 0, .work = CallKind::all_reduce, .group = 5};
  call.call = write_call({.kind = CallKind::all_reduce, .dtype = DType::float32, .count = 10}, 1);
  CHECK(fault(call, 40).empty());
  CHECK_THAT(fault(call, 39), ContainsSubstring("other data"));
  CHECK_THAT(fault(call, 40, 0), ContainsSubstring("another rank's name"));
  const auto changed = [&call](const auto& change) {
    FrameHeader header = call;
    change(header);
    return fault(header, 40);
  };
  for (const std::int32_t rank : {-1, 1, 2, 1'000'000}) {
    CHECK_THAT(changed([rank](FrameHeader& header) { header.rank = rank; }), ContainsSubstring("another rank's name"));
  }
  CHECK_THAT(changed([](FrameHeader& header) { header.group = 6; }), ContainsSubstring("unknown group"));
  CHECK_THAT(changed([](FrameHeader& header) { header.call.root = 2; }), ContainsSubstring("unknown root"));
  CHECK_THAT(changed([](FrameHeader& header) { header.call.count = std::uint64_t{1} << 62; }), ContainsSubstring("other data"));
  CHECK_THAT(changed([](FrameHeader& header) { header.call.dtype = DType{99}; }), ContainsSubstring("unknown call"));
  for (const CallKind kind : {CallKind::send, CallKind::receive, CallKind{99}}) {
    CHECK_THAT(changed([kind](FrameHeader& header) { header.work = kind; }), ContainsSubstring("unknown call"));
    CHECK_THAT(changed([kind](FrameHeader& header) { header.call.kind = kind; }), ContainsSubstring("unknown call"));
  }
}

TEST_CASE("a message to the hub is for a member") {
  FrameHeader letter{.kind = FrameKind::letter, .rank = 0, .size = 1, .to = 0, .group = 5};
  letter.call = write_call({.kind = CallKind::send, .dtype = DType::uint8, .count = 3}, 0);
  CHECK(fault(letter, 3).empty());
  CHECK_THAT(fault(letter, 4), ContainsSubstring("other data"));
  letter.call = write_call({.kind = CallKind::barrier, .dtype = DType::uint8, .count = 3}, 0);
  CHECK_THAT(fault(letter, 3), ContainsSubstring("unknown message"));
  letter.call = write_call({.kind = CallKind::send, .dtype = DType::uint8, .count = 3}, 0);
  letter.size = 2;
  CHECK_THAT(fault(letter, 3), ContainsSubstring("nobody of its group"));
  letter.size = 1;
  letter.to = 1;
  CHECK_THAT(fault(letter, 3), ContainsSubstring("nobody of its group"));
}

TEST_CASE("members of a group are ranks of the job, and stay") {
  CHECK(fault_of_members({2, 0}, 5, 0).empty());
  CHECK(fault_of_members({1}, 6, 1).empty());
  CHECK_FALSE(fault_of_members({0, 2}, 5, 0).empty());
  CHECK_FALSE(fault_of_members({1, 1}, 6, 1).empty());
  CHECK_FALSE(fault_of_members({1, 3}, 6, 1).empty());
  CHECK_FALSE(fault_of_members({1, 2}, 6, 0).empty());
}

TEST_CASE("what the hub alone sends comes from no rank") {
  CHECK(fault({.kind = FrameKind::farewell}, 0).empty());
  CHECK_FALSE(fault({.kind = FrameKind::farewell}, 1).empty());
  CHECK_FALSE(fault({.kind = FrameKind::failure, .rank = 3}, 0).empty());
  for (const FrameKind kind : {FrameKind::hello, FrameKind::welcome, FrameKind::result, FrameKind{77}}) {
    CHECK_THAT(fault({.kind = kind}, 0), ContainsSubstring("the hub alone"));
  }
}
