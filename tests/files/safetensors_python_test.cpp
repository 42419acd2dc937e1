#include <cstdlib>
#include <numeric>

#include "catch.hpp"
#include "files/safetensors_format.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("the format's own reader finds in our files what was written") {
  const char* given = std::getenv("TRIREME_PYTHON");
  const std::string python = given != nullptr ? given : "python3";
  if (std::system((python + " -c 'import numpy, safetensors' 2> /dev/null").c_str()) != 0) {
    skip_program(python + " has no safetensors; pip install safetensors numpy, or name another one by TRIREME_PYTHON");
  }

  std::vector<std::uint8_t> bytes(64);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::vector<TensorRef> tensors;
  for (int dtype = 0; dtype <= static_cast<int>(DType::float64); ++dtype) {
    const auto value = static_cast<DType>(dtype);
    tensors.push_back({std::string(safetensors::format_name(value)), value, {2, 3}, bytes.data()});
  }
  tensors.push_back({"scalar \"\\\u00e9", DType::float32, {}, bytes.data()});
  tensors.push_back({"empty", DType::float32, {0, 4}, nullptr});

  const TemporaryFolder folder;
  const std::string path = folder.path() / "all.safetensors";
  write_safetensors(path, tensors, {{"format", "pt"}, {"a \"key\"", "a\nvalue"}});
  CHECK(std::system((python + " " TRIREME_TESTS "/files/read_safetensors.py " + path).c_str()) == 0);
}
