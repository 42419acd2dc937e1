#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <trireme/trireme.hpp>
#include <vector>

// Programs of PyTorch in C++, each beside its original: vae.cpp beside vae.py. Each makes a model, fills it from a file of
// weights, trains it for 20 steps and returns their losses.
namespace ports {

struct Data {  // by their names
  std::map<std::string, trireme::Tensor<float>> numbers = {};
  std::map<std::string, trireme::Tensor<std::int32_t>> indices = {};
};
using Losses = std::vector<double>;
using Port = Losses(const trireme::Group& world, const std::string& weights, const Data& data);

Port conformer, graph_attention, two_tower, unet, vae, wavenet;

}  // namespace ports
