#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "temporary_folder.hpp"
#include "trireme/trireme.hpp"

namespace trireme::tests {

// The pass of a function of x [batch, width].
inline auto pass_of(const std::function<Variable<float>(const Variable<float>&)>& function, std::int64_t width = 4) {
  return [=](onnx::Example& example) {
    const auto x = example.input<float>("x", {example.dynamic("batch"), width});
    example.output("y", function(Variable<float>(x)));
  };
}

struct ExportedFile {
  tests::TemporaryFolder folder;
  std::string path = (folder.path() / "model.onnx").string();
};

}  // namespace trireme::tests
