#include "fuzz/parsers.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>
#include <random>

#include "catch.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/crc32c.hpp"

using namespace trireme;

namespace {

std::size_t live_bytes = 0;
std::size_t most_live_bytes = 0;

}  // namespace

// The address sanitizer replaces these functions, and then nothing is counted. GCC and clang have different names for it.
#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !HAS_FEATURE(address_sanitizer)
void* operator new(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += malloc_usable_size(memory);
  most_live_bytes = std::max(most_live_bytes, live_bytes);
  return memory;
}
void operator delete(void* memory) noexcept {
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

namespace {

// A few random changes: of bits, of bytes that formats like, of length; pieces that are moved or there twice.
std::string mutated(std::string text, std::mt19937& random) {
  using namespace std::string_view_literals;
  constexpr std::string_view liked = "\0\1\x7f\x80\xff{}[],:\"-.0129e"sv;
  const auto below = [&](std::size_t count) { return count == 0 ? 0 : random() % count; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size());
    const std::size_t count = std::min(text.size() - at, 1 + below(8));
    switch (below(6)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1: text.insert(at, 1, liked[below(liked.size())]); break;
      case 2: text.erase(at, count); break;
      case 3: text.insert(below(text.size() + 1), text.substr(at, count)); break;
      case 4: text.replace(at, count, std::to_string(random() >> below(32))); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("parsers answer whatever they are given") {
  for (const fuzz::Parser& parser : fuzz::parsers()) {
    std::mt19937 random(7);
    const auto run = [&](const std::string& text) {
      CAPTURE(parser.name, text);
      REQUIRE_NOTHROW(parser.run({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
    };
    for (const std::string& seed : parser.seeds()) {
      run(seed);
      for (std::size_t length = 0; length < std::min<std::size_t>(seed.size(), 200); ++length) run(seed.substr(0, length));
      for (int round = 0; round < 3000; ++round) run(mutated(seed, random));
    }
  }
}

namespace {

std::string joined(std::size_t count, const std::function<std::string(std::size_t)>& element) {
  std::string text;
  for (std::size_t index = 0; index < count; ++index) {
    if (index > 0) text += ',';
    text += element(index);
  }
  return text;
}

struct Content {
  std::string configuration = {};
  std::string tensors = {};
  std::string values = {};
  std::string other = "0";  // of a member that a later version may have added
  std::int64_t chunk_bytes = 8;
};

std::string manifest_of(const Content& content) {
  const std::string text = fmt::format(
      R"({{"chunk_bytes":{},"configuration":{{{}}},"critical":[],"digest":"0000000000000000",)"
      R"("files":[{{"bytes":9223372036854775807,"header_bytes":0,"header_crc32c":0,"name":"f"}}],)"
      R"("format":"trireme checkpoint","min_reader":1,"step":1,"tensors":[{}],"values":{{{}}},"version":1,"zzz":{}}})",
      content.chunk_bytes, content.configuration, content.tensors, content.values, content.other);
  return fmt::format("{{\"crc32c\":{},\"manifest\":{}}}\n", crc32c(std::as_bytes(std::span(text))), text);
}

std::string tensor_of(const std::string& parts, std::int64_t numel, const std::string& name = "t") {
  return fmt::format(
      R"({{"digest":"0000000000000000","dtype":"uint8","name":"{}","optional":false,"parts":[{}],"shape":[{}]}})", name, parts,
      numel);
}

std::string part_of(const std::string& runs, const std::string& checksums = "0") {
  return fmt::format(R"({{"crc32c":[{}],"file":0,"offset":0,"runs":[{}]}})", checksums, runs);
}

// The result of parsing. Checks that it takes at most twice the text and a MiB.
std::string answer_to(const Content& content) {
  const std::string text = manifest_of(content);
  const std::size_t before = live_bytes;
  most_live_bytes = before;
  std::string answer = "accepted";
  try {
    checkpoint::parse_manifest(text, "manifest.json");
  } catch (const Error& error) {
    answer = error.what();
  }
  INFO(text.substr(0, 300));
  CHECK(most_live_bytes - before <= 2 * text.size() + (1 << 20));
  return answer;
}

}  // namespace

TEST_CASE("a manifest that was made to ask for memory gets none") {
  constexpr std::size_t many = 200'000;
  const auto far_more = ContainsSubstring("far more memory");
  CHECK(answer_to({}) == "accepted");
  CHECK_THAT(answer_to({.configuration = joined(many, [](auto i) { return fmt::format(R"("{:07}":"")", i); })}), far_more);
  CHECK_THAT(answer_to({.values = joined(many, [](auto i) { return fmt::format(R"("{:07}":0)", i); })}), far_more);
  const std::string wide(4'000'000, 'x');
  CHECK(answer_to({.values = fmt::format(R"("v":"{}\n")", wide)}) == "accepted");
  CHECK_THAT(answer_to({.values = fmt::format(R"("{}":0)", wide)}), ContainsSubstring("a name has 4000000 bytes"));
  CHECK(answer_to({.other = fmt::format("[{}]", joined(many, [](auto) { return "[{},[]]"; }))}) == "accepted");
  CHECK_THAT(answer_to({.other = std::string(many, '[')}), ContainsSubstring("nested too deep"));
  CHECK(answer_to({.tensors = joined(many / 4, [](auto i) { return tensor_of("", 0, fmt::format("{:07}", i)); })}) ==
        "accepted");
  answer_to({.tensors = tensor_of(part_of(joined(many, [](auto i) { return fmt::format("[{},1,0,1]", 3 * i); })), 3 * many)});
  answer_to({.tensors = tensor_of(joined(many / 4, [](auto i) { return part_of(fmt::format("[{},1,0,1]", i)); }), many / 4)});
  answer_to({.tensors = tensor_of(part_of("[0,1,0,1]", joined(4 * many, [](auto) { return "0"; })), 1)});
}

TEST_CASE("parts of a tensor hold each element once, however many runs they stand for") {
  const auto parts = [](std::int64_t numel, const std::string& first, const std::string& second, std::int64_t chunk_bytes = 8) {
    Content content{.tensors = fmt::format("{},{}", part_of(first), part_of(second))};
    content.tensors = tensor_of(content.tensors, numel);
    content.chunk_bytes = chunk_bytes;
    return answer_to(content);
  };
  CHECK(parts(8, "[0,1,2,4]", "[1,1,2,4]") == "accepted");
  CHECK(parts(8, "[0,2,6,2]", "[2,4,0,1]") == "accepted");
  CHECK_THAT(parts(8, "[0,1,2,4]", "[0,1,2,4]"), ContainsSubstring("not there as a whole, or twice"));
  CHECK_THAT(parts(8, "[0,1,2,4]", "[1,1,2,3]"), ContainsSubstring("not there as a whole, or twice"));
  CHECK_THAT(parts(8, "[0,1,2,4]", "[0,5,0,1]"), ContainsSubstring("not there as a whole, or twice"));
  CHECK_THAT(parts(8, "[0,1,2,4]", "[1,1,2,3],[2,1,0,1]"), ContainsSubstring("impossible elements"));
  CHECK_THAT(parts(8, "[0,1,2,5]", "[1,1,2,4]"), ContainsSubstring("impossible elements"));
  constexpr std::int64_t half = std::int64_t{1} << 60;
  CHECK_THAT(parts(2 * half, fmt::format("[0,1,2,{}]", half), fmt::format("[1,1,2,{}]", half), half),
             ContainsSubstring("too many pieces"));
}
