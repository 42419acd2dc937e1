// The gain of one map() expression (autograd/operations/map.hpp) over composed operations: gate * sigmoid(gate) * up, the
// product in a SwiGLU layer, forward and backward, as map() and as silu(gate) * up, in turn. The lower bound beside them is
// copy loops over the same memory.
//   map [--rows 4096] [--width 1024] [--json FILE]

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "map/swiglu.hpp"
#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;

namespace {

struct Options {
  std::int64_t rows = 4096;
  std::int64_t width = 1024;
  int rounds = 21;
  std::string json;
};

Tensor<float> values(const Shape& shape) {
  Tensor<float> x(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<float>(i % 1000) / 250.0F - 2.0F;
  return x;
}

// Copies with the same traffic: forward reads two tensors and writes one, backward reads three and writes two.
struct Copies {
  static constexpr std::string_view name = "copies";
  void forward(const Tensor<float>& a, const Tensor<float>& b, Tensor<float>& y) const { ops::add(a, b, y); }
  void backward(const Tensor<float>& dy, const Tensor<float>& a, const Tensor<float>& b, const Gradient<float>& da,
                const Gradient<float>& db) const {
    da.contribute([&](Tensor<float>& out, bool accumulate) { ops::multiply(dy, b, out, accumulate); });
    db.contribute([&](Tensor<float>& out, bool accumulate) { ops::multiply(dy, a, out, accumulate); });
  }
};

double seconds(const Tensor<float>& gate, const Tensor<float>& up, const Tensor<float>& upstream, const auto& function) {
  return seconds_of([&] {
    const Tape tape;
    const auto ignore = [](const Tensor<float>&) {};
    function(watch(gate, ignore), watch(up, ignore)).backward(upstream);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("What an own operation in one expression saves.");
  command.option("--rows", options.rows, "rows of the tensors");
  command.option("--width", options.width, "elements of a row");
  command.option("--rounds", options.rounds, "timed passes of each side, in turn");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;

  const Shape shape{options.rows, options.width};
  const Tensor<float> gate = values(shape);
  const Tensor<float> up = values(shape);
  const Tensor<float> upstream = values(shape);
  std::vector<double> mapped, composed, copied;
  for (int round = -2; round < options.rounds; ++round) {
    const double of_map = seconds(gate, up, upstream, swiglu_product);
    const double of_functions = seconds(gate, up, upstream, [](const auto& x, const auto& y) { return silu(x) * y; });
    const double of_copies = seconds(gate, up, upstream, [](const auto& x, const auto& y) {
      return record(Copies{}, Result<float>{x.shape()}, kept(x), kept(y));
    });
    if (round < 0) continue;
    mapped.push_back(of_map);
    composed.push_back(of_functions);
    copied.push_back(of_copies);
  }
  const double of_map = median(mapped);
  fmt::print("map()            {:8.3f} ms\n", 1e3 * of_map);
  fmt::print("silu(gate) * up  {:8.3f} ms, {:.2f} times map()\n", 1e3 * median(composed), median(composed) / of_map);
  fmt::print("sum, 2 products  {:8.3f} ms, {:.2f} times map()\n", 1e3 * median(copied), median(copied) / of_map);
  write_json(options.json, {{"map", of_map}, {"composed", median(composed)}, {"arithmetic", median(copied)}});
  return 0;
}
