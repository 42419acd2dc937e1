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

// Who exchanges compressed gradients.
enum class CompressionBetween : std::uint8_t {
  nodes,  // the ranks of a node sum theirs as they are; each then compresses the node's sum of some parameters
  ranks,  // every rank compresses its own
};

// Makes a hook. Each DataParallel calls it for one of its own, since a hook keeps what is one model's; so options may be
// copied, and shared by ranks that are threads.
using HookFactory = std::function<std::shared_ptr<CommunicationHook>()>;

struct CompressionOptions {
  HookFactory hook = {};       // of every DataParallel with these options
  std::int64_t start = 0;      // steps before this one are not compressed
  bool only_if_faster = true;  // tried at the first compressed step; else it is on without a trial
  CompressionBetween between = CompressionBetween::nodes;
};

// What was decided at the first compressed step; seconds are those of one step's gradients with nothing beside them, on the
// slowest rank, 0 where nothing was measured.
struct CompressionDecision {
  bool on = false;
  double dense_seconds = 0;       // by the fitted cost of reductions
  double compressed_seconds = 0;  // measured, with coding
  std::string text;               // one line: what and why
};

// Float16 or bfloat16 on the wire, summed in float. Gradients are divided by the number of ranks first, so that their sum
// stays in range; a single one beyond 65504 becomes infinite in float16.
HookFactory float16_hook();
HookFactory bfloat16_hook();

// 8 bits an element and a float scale for every 256 of them. Each rank sums a part in float, and gives it to all in 8 bits.
HookFactory int8_hook();

// Of each parameter the elements of largest magnitude; what is not sent is added to the next step's gradient (Aji, Heafield
// 2017, arXiv 1704.05021). Parameters of fewer than `dense_below` elements are sent whole.
struct TopKOptions {
  double ratio = 0.01;                                       // of the elements, above 0, at most 1
  std::int64_t warmup_steps = 0;                             // first these ratios, each for as many of these steps
  std::vector<double> warmup = {0.25, 0.063, 0.015, 0.004};  // Lin et al. 2017, arXiv 1712.01887; those above `ratio`
  double momentum = 0;                                       // momentum correction, of the same paper: before the selection,
                                                             // so train with SGD without momentum
  std::int64_t dense_below = 1024;
};
HookFactory top_k_hook(const TopKOptions& options = {});

// Matrices as a product of two of `rank` columns, found by one step of power iteration from the last step's; what is lost is
// added to the next step's gradient (Vogels et al. 2019, arXiv 1905.13727). Of more than two dims the leading ones become rows
// and the others columns, so that both together are the fewest. What would not shrink to half is sent whole. Ranks hold the
// same bits where they compute with the same instruction set.
struct PowerSgdOptions {
  int rank = 4;
  std::uint64_t seed = 1;  // of the first step's matrices
};
HookFactory power_sgd_hook(const PowerSgdOptions& options = {});

// "none" (empty), "fp16", "bf16", "int8", "topk:RATIO" or "powersgd:RANK". `warmup_steps` is for topk.
HookFactory parse_compression(std::string_view text, std::int64_t warmup_steps = 0);

}  // namespace parallel
}  // namespace trireme
