#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/parallel/hooks/communication_hook.hpp"

namespace trireme TRIREME_EXPORT {
namespace parallel {

// Which ranks exchange compressed gradients.
enum class CompressionBetween : std::uint8_t {
  nodes,  // the ranks of a node sum their gradients uncompressed; each rank then compresses the sums of some parameters
  ranks,  // every rank compresses its own gradients
};

// Makes a hook. Each DataParallel calls the factory for a hook of its own, because a hook keeps the state of one model.
// Therefore options with a factory can be copied and shared by ranks that are threads.
using HookFactory = std::function<std::shared_ptr<CommunicationHook>()>;

struct CompressionOptions {
  HookFactory hook = {};
  std::int64_t start = 0;      // steps before this one are not compressed
  bool only_if_faster = true;  // compresses only if a trial at the first step allowed by `start` was faster; false: no trial
  CompressionBetween between = CompressionBetween::nodes;
};

// Whether gradients are compressed, as decided at the first step that may be compressed. Both times are seconds that the
// slowest rank takes to reduce one step's gradients without overlap; they are 0 if there was no trial.
struct CompressionDecision {
  bool on = false;
  double dense_seconds = 0;       // predicted from measured reductions without compression
  double compressed_seconds = 0;  // measured, with encoding and decoding
  std::string text;               // one line: the decision and its reason
};

// Send gradients as float16 or bfloat16 and sum them in float. Gradients are first divided by the number of ranks, so that the
// sum stays in range; in float16 a quotient beyond 65504 becomes infinite.
HookFactory float16_hook();
HookFactory bfloat16_hook();

// Sends 8 bits per element and a float scale per 256 elements. Each rank sums one part in float and sends the sum to all ranks
// in 8 bits.
HookFactory int8_hook();

// Sends the elements of largest magnitude of each gradient; the other elements are added to the next step's gradient (Aji,
// Heafield 2017, arXiv 1704.05021). Parameters of fewer than `dense_below` elements are sent whole.
struct TopKOptions {
  double ratio = 0.01;                                       // the share of elements that is sent: above 0, at most 1
  std::int64_t warmup_steps = 0;                             // number of steps with each ratio of `warmup`, before `ratio`
  std::vector<double> warmup = {0.25, 0.063, 0.015, 0.004};  // never below `ratio` (Lin et al. 2017, arXiv 1712.01887)
  double momentum = 0;                                       // momentum before the selection (same paper); if above 0,
                                                             // train with SGD without momentum
  std::int64_t dense_below = 1024;
};
HookFactory top_k_hook(const TopKOptions& options = {});

// Sends a gradient matrix as the product of two matrices with `rank` columns (Vogels et al. 2019, arXiv 1905.13727). One power
// iteration finds these matrices; it starts from the last step's matrices. The error of the product is added to the next
// step's gradient. A gradient with more than two dims becomes a matrix: some leading dims are the rows, and the other dims are
// the columns. The split with the smallest rows + columns is used. Gradients that would not shrink to half are sent whole.
// Ranks hold the same bits if they compute with the same instruction set.
struct PowerSgdOptions {
  int rank = 4;
  std::uint64_t seed = 1;  // of the matrices with which the first step's iteration starts
};
HookFactory power_sgd_hook(const PowerSgdOptions& options = {});

// Reads "none" (gives an empty factory), "fp16", "bf16", "int8", "topk:RATIO" or "powersgd:RANK". `warmup_steps` is for topk.
HookFactory parse_compression(std::string_view text, std::int64_t warmup_steps = 0);

}  // namespace parallel
}  // namespace trireme
