#include "trainer/gradient_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <variant>

#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme::trainer {

namespace {

using GradientRow = OptionRow<GradientWords>;

constexpr std::int64_t most_compression_steps = std::int64_t{1} << 40;

void require_steps(const char* name, std::int64_t steps) {
  require(steps >= 0 && steps <= most_compression_steps, "{} lies in [0, {}], and {} does not", name, most_compression_steps,
          steps);
}

OptionValue one_of(std::string& value, std::vector<std::string> choices) {
  return Words{.shown = [&value] { return value; },
               .take = [&value](const std::string& given) { value = given; },
               .choices = std::move(choices)};
}

constexpr auto rows_of_gradients = std::to_array<GradientRow>({
    {.name = "bucket-mb",
     .value = [](GradientWords& w) -> OptionValue { return &w.bucket_mb; },
     .text = "MiB of gradients that are reduced together; auto: find the best buckets in the first 30 steps"},
    {.name = "bucket-profile",
     .value = [](GradientWords& w) -> OptionValue { return &w.bucket_profile; },
     .text = "use the tuned buckets in this file, or tune and write them to it"},
    {.name = "fixed-bits",
     .value = [](GradientWords& w) -> OptionValue { return &w.fixed_bits; },
     .text = "micro-batches of a step on all replicas together, a power of two for each; the weights then have the same bits "
             "for any "
             "number of replicas, buckets and nodes; 0: off",
     .setting = "fixed_bits",
     .differs = Differs::allowed,
     .check = [](const GradientWords& w) { require(w.fixed_bits >= 0, "--fixed-bits is 0 or more, not {}", w.fixed_bits); }},
    {.name = "compress",
     .value = [](GradientWords& w) -> OptionValue { return &w.compress; },
     .text = "compression of gradients between nodes: none, fp16, bf16, int8, topk:RATIO or powersgd:RANK",
     .check = [](const GradientWords& w) { parallel::parse_compression(w.compress); }},
    {.name = "compress-start",
     .value = [](GradientWords& w) -> OptionValue { return &w.compress_start; },
     .text = "the first step with compression",
     .check = [](const GradientWords& w) { require_steps("--compress-start", w.compress_start); }},
    {.name = "compress-warmup",
     .value = [](GradientWords& w) -> OptionValue { return &w.compress_warmup; },
     .text = "topk sends 25, 6.3, 1.5 and 0.4 % of the elements, each for this many steps, before RATIO",
     .check = [](const GradientWords& w) { require_steps("--compress-warmup", w.compress_warmup); }},
    {.name = "compress-when",
     .value = [](GradientWords& w) -> OptionValue {
       return one_of(w.compress_when, {"faster", "always"});
     },
     .text = "faster: compress only if a trial at the first such step was faster; always: no trial"},
    {.name = "compress-between",
     .value = [](GradientWords& w) -> OptionValue {
       return one_of(w.compress_between, {"nodes", "ranks"});
     },
     .text = "nodes: the ranks of a node sum their gradients first; ranks: each rank compresses its own"},
});

bool tunes(const GradientWords& words) { return words.bucket_mb == "auto"; }

std::int64_t bucket_bytes_of(const GradientWords& words) {
  const auto value = parse_number<double>(words.bucket_mb);
  require(value && *value > 0 && *value < 1e9, "--bucket-mb {} is neither a number of MiB above 0 nor auto", words.bucket_mb);
  return static_cast<std::int64_t>(std::ceil(*value * (1 << 20)));
}

parallel::GradientSum sum_of(const GradientWords& words) {
  if (words.compress != "none") {
    return parallel::Hooked{{.hook = parallel::parse_compression(words.compress, words.compress_warmup),
                             .start = words.compress_start,
                             .only_if_faster = words.compress_when == "faster",
                             .between = words.compress_between == "nodes" ? parallel::CompressionBetween::nodes
                                                                          : parallel::CompressionBetween::ranks}};
  }
  const parallel::Tuning tuning{.on = tunes(words), .profile = words.bucket_profile};
  if (words.fixed_bits > 0) return parallel::FixedBits{.micro_batches = words.fixed_bits, .tuning = tuning};
  return parallel::Plain{.tuning = tuning};
}

}  // namespace

std::span<const OptionRow<GradientWords>> gradient_rows() { return rows_of_gradients; }

GradientWords gradient_words_of(const parallel::GradientSum& sum) {
  const auto* fixed = std::get_if<parallel::FixedBits>(&sum);
  return {.fixed_bits = fixed == nullptr ? 0 : fixed->micro_batches};
}

void apply(const GradientWords& words, const std::function<bool(const char* name)>& given, Options& options) {
  const bool compresses = words.compress != "none";
  require(words.fixed_bits == 0 || !compresses,
          "--compress {} makes results depend on the nodes, and --fixed-bits makes them independent; give one of them",
          words.compress);
  require(!tunes(words) || !compresses, "--bucket-mb auto measures reductions without --compress {}; give a number",
          words.compress);
  require(words.bucket_profile.empty() || tunes(words), "--bucket-profile {} needs --bucket-mb auto", words.bucket_profile);
  require(words.fixed_bits == 0 || options.micro_batch_size == 0, "--micro-batch-size follows from --fixed-bits; leave it out");
  const std::string_view size = "bucket-mb";  // a size alone does not change how gradients are summed
  const bool sums =
      std::ranges::any_of(rows_of_gradients, [&](const GradientRow& row) { return row.name != size && given(row.name); });
  if (sums || tunes(words)) options.parallel.sum = sum_of(words);
  if (tunes(words) || !given("bucket-mb")) return;
  options.parallel.buckets.bytes = bucket_bytes_of(words);
  options.parallel.buckets.first_bytes = std::min<std::int64_t>(options.parallel.buckets.bytes, 1 << 20);
}

}  // namespace trireme::trainer
