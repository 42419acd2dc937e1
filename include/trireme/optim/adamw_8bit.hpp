#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/ops/update/adam_8bit.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct AdamW8bitOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // decoupled
  bool maximize = false;
  std::int64_t min_8bit_size = 4096;  // smaller parameters, of so many elements, keep moments in the type of the weights
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// AdamW with moments of 8 bits in blocks of 256 elements (Dettmers, Lewis, Shleifer, Zettlemoyer 2022, arXiv 2110.02861): 2.03
// bytes for each parameter instead of 8. The codes and the defaults are those of bitsandbytes' AdamW8bit, the steps AdamW's.
// Embeddings, whose gradients are sparse, are better left alone:
//
//   optim::AdamW8bit optimizer(net, {.groups = {{.pattern = "embed.*", .full_precision = true}}});
//
// It is a class and no option of AdamW: it keeps other things in a checkpoint, has no AMSGrad, and bears the name by which it
// is known elsewhere. Blocks are those of whole parameters. Where several ranks update one, they tell each other its largest
// magnitudes, so the bits are the same with any number of ranks. A parameter that a tensor or expert axis splits is refused,
// unless its moments are in full precision.
template <typename P, typename D = Cpu>
class AdamW8bit final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit AdamW8bit(Model& model, const AdamW8bitOptions& options = {});

  Settings settings() const override;

 private:
  using Piece = typename Optimizer<P, D>::Piece;
  using Look = typename Optimizer<P, D>::Look;

  // Neighbours in memory of one parameter that this rank updates.
  enum class Kind : std::uint8_t {
    full,    // moments in the type of the weights
    blocks,  // whole blocks
    part,    // of a block, whose other parts have other ranges
  };
  struct Run {
    int parameter;
    Range range;  // of the store
    Kind kind;
    std::int64_t place;           // of its first element, in the moments or the codes
    std::int64_t block = 0;       // the first, in the magnitudes
    std::int64_t first_pair = 0;  // of a part: those of its block in measured_
    std::int64_t pairs = 0;
    std::int64_t own_pair = 0;
  };

  // A block of which several ranges have parts: where these begin, ascending, and the pair of the first in measured_.
  struct Shared {
    Range block;  // of the store
    std::vector<std::int64_t> begins;
    std::int64_t first_pair;
  };

  bool is_8bit(int parameter) const;
  std::int64_t blocks_of(int parameter) const;
  void make_state();
  std::vector<Shared> shared_blocks(int parameter, std::int64_t& pairs) const;
  void add_runs(int parameter, const Range& own, const std::vector<Shared>& shared);
  Run part_of(int parameter, const Range& own, const Shared& shared) const;
  ops::AdamStep step_of(const Piece& piece) const;
  ops::Adam8bitPlanes<T> planes_of(const Run& run, const Piece& piece) const;
  void prepare(const Look& look) override;
  void update(const Piece& piece) override;
  void update_in_full(const Piece& piece, const Run& first, std::int64_t end) const;
  void add_more_to(State& state, const std::string& prefix) override;

  FlatStore& store_;
  AdamW8bitOptions options_;
  bool has_state_ = false;
  std::vector<Run> runs_;  // ascending
  std::int64_t num_moments_ = 0;
  std::int64_t num_codes_ = 0;
  std::int64_t num_blocks_ = 0;
  Tensor<T, D> first_moment_;
  Tensor<T, D> second_moment_;
  Tensor<std::uint8_t, D> first_codes_;
  Tensor<std::uint8_t, D> second_codes_;
  Tensor<float, D> first_absmax_;
  Tensor<float, D> second_absmax_;
  Tensor<float, D> measured_;  // [pairs, 2]: of each part of each block that is not one range's
};

template <TypedModel M>
AdamW8bit(const M&, const AdamW8bitOptions& = {}) -> AdamW8bit<typename M::Precision, typename M::Device>;

extern template class AdamW8bit<Float32, Cpu>;
extern template class AdamW8bit<MixedBfloat16, Cpu>;
extern template class AdamW8bit<MixedFloat16, Cpu>;
extern template class AdamW8bit<Float32, Cuda>;
extern template class AdamW8bit<MixedBfloat16, Cuda>;
extern template class AdamW8bit<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
