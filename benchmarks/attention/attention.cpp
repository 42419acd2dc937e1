// Times forward, and forward with backward, of causal self-attention, and prints the share of the peak that its products reach.

#include "trireme/autograd/operations/attention.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/fma_peak.hpp"
#include "measurement/measurement.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;

namespace {

struct Sizes {
  std::int64_t batch = 8;
  int heads = 6;
  std::int64_t time = 256;
  std::int64_t size = 64;
  std::int64_t document = 0;  // tokens of each document in a sequence; 0: the sequence is one document
  std::int64_t window = 0;
};

class Attention {
 public:
  explicit Attention(const Sizes& sizes)
      : options_{.heads = sizes.heads, .causal = true, .window = sizes.window},
        packed_({sizes.batch, sizes.time, 3 * sizes.heads * sizes.size}) {
    for (std::int64_t i = 0; i < packed_.numel(); ++i) {
      packed_.data()[i] = static_cast<float>(i * 7919 % 1021) / 510.5F - 1;
    }
    if (sizes.document == 0) return;
    first_keys_ = Tensor<std::int32_t>({sizes.batch, sizes.time});
    for (std::int64_t i = 0; i < first_keys_.numel(); ++i) {
      first_keys_.data()[i] = static_cast<std::int32_t>(i % sizes.time / sizes.document * sizes.document);
    }
  }

  void forward() const { scaled_dot_product_attention(Variable<float>(packed_), Variable<float>(), options_, {}, first_keys_); }
  void forward_and_backward() const {
    const Tape tape;
    const auto packed = watch(packed_, [](const Tensor<float>&) {});
    scaled_dot_product_attention(packed, Variable<float>(), options_, {}, first_keys_).backward();
  }

 private:
  ops::AttentionOptions options_;
  Tensor<float> packed_;
  Tensor<std::int32_t> first_keys_;
};

}  // namespace

int main(int argc, char** argv) {
  CommandLine command("Measures causal self-attention, the masked half not counted as operations");
  Sizes sizes;
  int threads = 1;
  int steps = 9;
  std::string json;
  command.option("--batch", sizes.batch, "sequences");
  command.option("--heads", sizes.heads, "of each sequence");
  command.option("--time", sizes.time, "tokens of a sequence");
  command.option("--size", sizes.size, "of a head");
  command.option("--document", sizes.document, "tokens of each document in a sequence, beside which no other is seen; 0: one");
  command.option("--window", sizes.window, "keys that a query sees; 0: all");
  command.option("--threads", threads, "OpenMP threads");
  command.option("--steps", steps, "measured, after one that is not");
  command.option("--json", json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(threads);

  Sizes causal = sizes;
  causal.document = causal.window = 0;
  const Attention attention(causal), part(sizes);
  const bool has_part = sizes.document > 0 || sizes.window > 0;
  std::vector<double> of_forward, of_both, part_of_forward, part_of_both;
  for (int step = 0; step <= steps; ++step) {  // in turn, so that all see the same machine
    const double forward = seconds_of([&] { attention.forward(); });
    const double both = seconds_of([&] { attention.forward_and_backward(); });
    const double part_forward = has_part ? seconds_of([&] { part.forward(); }) : 0;
    const double part_both = has_part ? seconds_of([&] { part.forward_and_backward(); }) : 0;
    if (step == 0) continue;
    of_forward.push_back(forward);
    of_both.push_back(both);
    part_of_forward.push_back(part_forward);
    part_of_both.push_back(part_both);
  }
  const double peak = measure_fma_peak() * threads;
  // Two products forward and five backward, over the half that is not masked.
  const double operations =
      static_cast<double>(sizes.batch * sizes.heads * sizes.size) * static_cast<double>(sizes.time * (sizes.time + 1));
  const auto print = [&](const char* name, double seconds, int products) {
    fmt::print("{:22} {:8.2f} ms  {:6.1f} GFLOP/s, {:.0f} % of the float32 FMA peak\n", name, 1e3 * seconds,
               products * operations / seconds * 1e-9, 100 * products * operations / seconds / peak);
  };
  fmt::print("batch {}, {} heads of {}, {} tokens, {} thread(s): medians of {} steps\n", sizes.batch, sizes.heads, sizes.size,
             sizes.time, threads, steps);
  print("forward", median(of_forward), 2);
  print("forward and backward", median(of_both), 7);
  if (has_part) {
    const auto print_part = [](const char* name, double seconds, double whole) {
      fmt::print("{:22} {:8.2f} ms, {:.2f} times as quick\n", name, 1e3 * seconds, whole / seconds);
    };
    fmt::print("of documents of {} tokens and windows of {} keys:\n", sizes.document, sizes.window);
    print_part("forward", median(part_of_forward), median(of_forward));
    print_part("forward and backward", median(part_of_both), median(of_both));
  }
  write_json(json, {{"forward_seconds", median(of_forward)}, {"forward_and_backward_seconds", median(of_both)}});
}
