// Forward, and forward and backward, of causal self-attention alone, with the share of the peak that its products reach.

#include <fmt/format.h>
#include <omp.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/fma_peak.hpp"
#include "measurement/measurement.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;

namespace {

struct Sizes {
  std::int64_t batch = 8;
  int heads = 6;
  std::int64_t time = 256;
  std::int64_t size = 64;
};

class Attention {
 public:
  explicit Attention(const Sizes& sizes)
      : options_{.heads = sizes.heads, .causal = true}, packed_({sizes.batch, sizes.time, 3 * sizes.heads * sizes.size}) {
    for (std::int64_t i = 0; i < packed_.numel(); ++i) {
      packed_.data()[i] = static_cast<float>(i * 7919 % 1021) / 510.5F - 1;
    }
  }

  void forward() const { scaled_dot_product_attention(Variable<float>(packed_), Variable<float>(), options_); }
  void forward_and_backward() const {
    const Tape tape;
    const auto packed = watch(packed_, [](const Tensor<float>&) {});
    scaled_dot_product_attention(packed, Variable<float>(), options_).backward();
  }

 private:
  ops::AttentionOptions options_;
  Tensor<float> packed_;
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
  command.option("--threads", threads, "OpenMP threads");
  command.option("--steps", steps, "measured, after one that is not");
  command.option("--json", json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(threads);

  const Attention attention(sizes);
  std::vector<double> of_forward;
  std::vector<double> of_both;
  for (int step = 0; step <= steps; ++step) {  // in turn, so that both see the same machine
    const double forward = seconds_of([&] { attention.forward(); });
    const double both = seconds_of([&] { attention.forward_and_backward(); });
    if (step == 0) continue;
    of_forward.push_back(forward);
    of_both.push_back(both);
  }
  const double peak = measure_fma_peak() * threads;
  // Two products forward and five backward, of the half that is not masked.
  const double operations =
      2.0 * static_cast<double>(sizes.batch * sizes.heads * sizes.time * (sizes.time + 1) / 2 * sizes.size);
  const auto print = [&](const char* name, double seconds, int products) {
    fmt::print("{:22} {:8.2f} ms  {:6.1f} GFLOP/s, {:.0f} % of the float32 FMA peak\n", name, 1e3 * seconds,
               products * operations / seconds * 1e-9, 100 * products * operations / seconds / peak);
  };
  fmt::print("batch {}, {} heads of {}, {} tokens, {} thread(s): medians of {} steps\n", sizes.batch, sizes.heads, sizes.size,
             sizes.time, threads, steps);
  print("forward", median(of_forward), 2);
  print("forward and backward", median(of_both), 7);
  write_json(json, {{"forward_seconds", median(of_forward)}, {"forward_and_backward_seconds", median(of_both)}});
}
