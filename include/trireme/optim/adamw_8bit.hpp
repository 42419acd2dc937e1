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
  std::int64_t min_8bit_size = 4096;  // parameters with fewer elements keep moments in the type of the weights
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// AdamW with moments of 8 bits in blocks of 256 elements (Dettmers, Lewis, Shleifer, Zettlemoyer 2022, arXiv 2110.02861): 2.03
// bytes for each parameter instead of 8. The codes and the defaults are those of bitsandbytes' AdamW8bit; the steps are those
// of AdamW. Embeddings have sparse gradients and are better kept in full precision:
//
//   optim::AdamW8bit optimizer(net, {.groups = {{.pattern = "embed.*", .full_precision = true}}});
//
// AdamW8bit is a class of its own and not an option of AdamW, because it has other state in a checkpoint and no AMSGrad. Blocks
// are cut from whole parameters. If several ranks update parts of a block, they exchange the largest magnitudes of the block,
// so the bits are the same with any number of ranks. A parameter that is split over a tensor or expert axis is an error, unless
// its moments are in full precision.
template <typename P, typename D = Cpu>
class AdamW8bit final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit AdamW8bit(Model& model, const AdamW8bitOptions& options = {});

  Settings settings() const override;

 private:
  using Piece = typename Optimizer<P, D>::Piece;
  using Look = typename Optimizer<P, D>::Look;

  // How a run keeps its moments. A run is a range of one parameter that this rank updates.
  enum class Kind : std::uint8_t {
    full,    // moments in the type of the weights
    blocks,  // whole blocks
    part,    // part of a block that lies in several ranges
  };
  struct Run {
    int parameter;
    Range range;  // of the store
    Kind kind;
    std::int64_t place;           // of its first element, in the moments or the codes
    std::int64_t block = 0;       // its first block, as index of the magnitudes
    std::int64_t first_pair = 0;  // for a part: the first pair of its block in measured_
    std::int64_t pairs = 0;
    std::int64_t own_pair = 0;
  };

  // A block that lies in several ranges: the beginnings of its parts, ascending, and the first part's pair in measured_.
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
  Tensor<float, D> measured_;  // [pairs, 2]: the largest magnitudes of each part of a block that lies in several ranges
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
