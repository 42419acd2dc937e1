#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "trainer/option_rows.hpp"
#include "trireme/parallel/parallel_options.hpp"
#include "trireme/trainer/options.hpp"

namespace trireme::trainer {

// The values of the command line's options for summing gradients.
struct GradientWords {
  std::string bucket_mb = "25";
  std::string bucket_profile = {};
  int fixed_bits = 0;
  std::string compress = "none";
  std::int64_t compress_start = 0;
  std::int64_t compress_warmup = 0;
  std::string compress_when = "faster";
  std::string compress_between = "nodes";
};

std::span<const OptionRow<GradientWords>> gradient_rows();

// The values for `sum` that checkpoints keep; the others have their defaults.
GradientWords gradient_words_of(const parallel::GradientSum& sum);

// Checks the values together, and sets in `options` those that were given.
void apply(const GradientWords& words, const std::function<bool(const char* name)>& given, Options& options);

}  // namespace trireme::trainer
