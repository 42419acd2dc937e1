#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Low-rank adaptation (Hu et al. 2021, arXiv 2106.09685), with the names of PEFT's LoraConfig. A model with these options in
// its ModelContext is frozen, and each linear layer that is a target computes
//
//   x W^T + bias + scale() * dropout(x) A^T B^T    with A [rank, in], B [out, rank]
//
// and trains only A and B. B starts as zeros, A is drawn like torch.nn.Linear's weight.
struct LoraOptions {
  int rank = 8;
  double alpha = 8;
  double dropout = 0;
  // Names of linear layers, or the last parts of their dotted names. A list with only all_linear means all linear layers except
  // the output layer.
  std::vector<std::string> targets = {};
  bool rank_stabilized = false;  // scale() divides by sqrt(rank) (Kalajdzievski 2023, arXiv 2312.03732)

  static constexpr std::string_view all_linear = "all-linear";

  double scale() const;                         // alpha / rank, or alpha / sqrt(rank)
  bool is_target(std::string_view name) const;  // name: a layer's dotted name
  void check() const;                           // throws Error for values that no layer can have
};

// A linear layer that targets can select by name: by the layer's own name, or by the names of the parts that the layer packs,
// such as q_proj, k_proj and v_proj in qkv_proj.
struct TargetableLayer {
  struct Part {
    std::string name;       // dotted
    std::int64_t rows = 0;  // of the whole weight
    bool is_target = false;
  };
  std::string module = {};
  std::vector<Part> parts = {};
};

// Throws Error{invalid_argument} for a target that names none of these layers.
void require_known_targets(const LoraOptions& options, const std::vector<TargetableLayer>& layers);

}  // namespace trireme
