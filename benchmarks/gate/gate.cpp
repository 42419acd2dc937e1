// The cost of the gate of operations (autograd/record.hpp): an operation that computes nothing is called through the gate and
// without it, in turn. Without it, it does only the work that any recording needs: it checks the operand and allocates a
// result. On a tape it also counts the use of the operand and makes a node that keeps the operand and the gradient of the
// result.
//   OMP_NUM_THREADS=1 gate [--json FILE]

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;

namespace {

struct Options {
  int operations = 2000;
  int rounds = 101;
  std::string json;
};

struct Nothing {
  static constexpr std::string_view name = "nothing";
  void forward(const auto&, auto&) const {}
  void backward(auto& dy, const auto&, const auto& dx) const { dx.give(std::move(dy)); }
};

class Node final : public Tape::Node {
 public:
  Node(Gradient<float> result, Tensor<float> kept, Gradient<float> dx)
      : result_(std::move(result)), kept_(std::move(kept)), dx_(std::move(dx)) {}
  void backward() override {
    Tensor<float> dy = result_.slot()->take();
    if (dy.defined()) dx_.give(std::move(dy));
  }

 private:
  Gradient<float> result_;
  Tensor<float> kept_;
  Gradient<float> dx_;
};

Variable<float> through_gate(const Variable<float>& x) { return record(Nothing{}, Result<float>{x.shape()}, kept(x)); }

Variable<float> beside_gate(const Variable<float>& x) {
  require_operands(Nothing::name, x);
  Tensor<float> y(x.shape());
  Tape* tape = Tape::current();
  if (tape == nullptr || x.slot() == nullptr) return y;
  detail::require_on(Nothing::name, *tape, *x.slot());
  x.slot()->count_use();
  Gradient<float> gradient(std::make_shared<Gradient<float>::Slot>(*tape, y.shape()));
  tape->add(std::make_unique<Node>(gradient, x.value(), x.gradient()));
  return {std::move(y), std::move(gradient)};
}

struct Sides {
  std::vector<double> through;
  std::vector<double> beside;

  double nanoseconds_more() const {
    std::vector<double> differences;
    for (std::size_t i = 0; i < through.size(); ++i) differences.push_back(through[i] - beside[i]);
    return median(std::move(differences));
  }
};

// Nanoseconds for each operation in a chain.
double forward_alone(Variable<float> (*operation)(const Variable<float>&), int operations) {
  Variable<float> x(Tensor<float>({1}));
  return seconds_of([&] {
           for (int i = 0; i < operations; ++i) x = operation(x);
         }) *
         1e9 / operations;
}
double forward_and_backward(Variable<float> (*operation)(const Variable<float>&), int operations) {
  const Tape tape;
  Variable<float> x = watch(Tensor<float>({1}), [](const Tensor<float>&) {});
  return seconds_of([&] {
           for (int i = 0; i < operations; ++i) x = operation(x);
           x.backward();
         }) *
         1e9 / operations;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("What the gate of operations costs, in nanoseconds.");
  command.option("--operations", options.operations, "operations of a chain");
  command.option("--rounds", options.rounds, "timed chains of each side, in turn");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;

  nlohmann::ordered_json figures;
  const auto measure = [&](const std::string& what, auto chain) {
    Sides sides;
    for (int round = -2; round < options.rounds; ++round) {
      const bool first = round % 2 == 0;
      const double one = chain(first ? through_gate : beside_gate, options.operations);
      const double other = chain(first ? beside_gate : through_gate, options.operations);
      if (round < 0) continue;
      sides.through.push_back(first ? one : other);
      sides.beside.push_back(first ? other : one);
    }
    fmt::print("{:24} {:7.1f} ns through the gate, {:7.1f} ns beside it, {:+6.1f} ns (median of pairs)\n", what,
               median(sides.through), median(sides.beside), sides.nanoseconds_more());
    figures[what] = {{"through", median(sides.through)}, {"beside", median(sides.beside)}, {"more", sides.nanoseconds_more()}};
  };
  measure("forward without a tape", forward_alone);
  measure("forward and backward", forward_and_backward);
  write_json(options.json, figures);
  return 0;
}
