// One parser under libFuzzer: TRIREME_PARSER names it.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "fuzz/parsers.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

const trireme::fuzz::Parser& parser() {
  static const trireme::fuzz::Parser named = [] {
    for (const trireme::fuzz::Parser& each : trireme::fuzz::parsers()) {
      if (each.name == TRIREME_PARSER) return each;
    }
    throw std::invalid_argument("there is no parser " TRIREME_PARSER);
  }();
  return named;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  parser().run({data, size});
  return 0;
}

// Now and then one of the seeds, so that no folder of them is needed.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned int seed) {
  static const std::vector<std::string> seeds = parser().seeds();
  if (size < 2 || seed % 512 == 0) {
    const std::string& text = seeds[seed / 512 % seeds.size()];
    size = std::min(text.size(), max_size);
    std::memcpy(data, text.data(), size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
