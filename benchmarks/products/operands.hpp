#pragma once

#include <memory>
#include <unordered_map>

#include "ops/base/onednn.hpp"
#include "trireme/tensor/tensor.hpp"

// A tensor of numbers between -1 and 1.
inline trireme::Tensor<float> filled(const trireme::Shape& shape) {
  trireme::Tensor<float> tensor(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data()[i] = static_cast<float>(i * 37 % 1009) / 504.5f - 1.0f;
  return tensor;
}

// A primitive with its operands, which it keeps.
class Plan {
 public:
  Plan(dnnl::primitive primitive, const std::unordered_map<int, dnnl::memory::desc>& operands)
      : primitive_(std::move(primitive)) {
    for (const auto& [which, layout] : operands) {
      const dnnl::memory memory(layout, engine());
      const auto count = static_cast<std::int64_t>(layout.get_size() / sizeof(float));
      const trireme::Tensor<float> values = filled({count});
      std::copy_n(values.data(), count, static_cast<float*>(memory.get_data_handle()));
      operands_.emplace(which, memory);
    }
  }
  void run() {
    primitive_.execute(stream_, operands_);
    stream_.wait();
  }
  static const dnnl::engine& engine() {
    static const dnnl::engine processor{dnnl::engine::kind::cpu, 0};
    return processor;
  }

 private:
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> operands_;
  dnnl::stream stream_{engine()};
};
