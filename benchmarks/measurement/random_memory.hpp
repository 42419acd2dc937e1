#pragma once

#include <algorithm>
#include <random>

#include "ops/base/onednn.hpp"
#include "trireme/core/bfloat16.hpp"

// Makes a oneDNN memory with float32 or bfloat16 numbers from -1 to 1.
class RandomMemory {
 public:
  explicit RandomMemory(const dnnl::engine& engine) : engine_(engine) {}

  dnnl::memory operator()(const dnnl::memory::desc& layout) {
    dnnl::memory memory(layout, engine_);
    if (trireme::ops::type_of(layout) == dnnl::memory::data_type::f32) {
      fill(static_cast<float*>(memory.get_data_handle()), layout);
    } else {
      fill(static_cast<trireme::bfloat16*>(memory.get_data_handle()), layout);
    }
    return memory;
  }

 private:
  template <typename T>
  void fill(T* values, const dnnl::memory::desc& layout) {
    std::generate_n(values, layout.get_size() / sizeof(T), [this] { return T(distribution_(generator_)); });
  }

  dnnl::engine engine_;
  std::minstd_rand generator_{1};
  std::uniform_real_distribution<float> distribution_{-1, 1};
};
