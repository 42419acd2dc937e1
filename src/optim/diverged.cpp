#include "trireme/optim/diverged.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

namespace trireme::optim {

Error diverged(const StepSummary& summary, std::int64_t in_a_row) {
  const auto& [parameter, ranks] = summary.non_finite;
  const std::string began =
      ranks.empty() ? std::string("in a backward pass") : fmt::format("in the loss of rank {}", fmt::join(ranks, ", "));
  return Error(
      {.code = ErrorCode::diverged,
       .message = fmt::format("step {} (from 0){} has the loss {} and a gradient norm of {}: it began {}, and {}", summary.step,
                              in_a_row > 1 ? fmt::format(", the last of {} in a row,", in_a_row) : "", summary.loss(),
                              summary.gradient_norm, began,
                              parameter.empty() ? std::string("all gradients are finite")
                                                : fmt::format("the first gradient that is not finite, in the order of the "
                                                              "backward pass, is that of {}",
                                                              parameter)),
       .rank = ranks.empty() ? -1 : ranks.front(),
       .name = parameter,
       .hint = "look at that step's data, lower the learning rate or clip; NonFinitePolicy::skip leaves such steps out"});
}

}  // namespace trireme::optim
