// Forward and backward of stacked LSTM layers, beside oneDNN's own LSTM primitive in the same run.

#include <fmt/format.h>
#include <omp.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "measurement/turns.hpp"
#include "onednn_lstm.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"

using namespace trireme;

namespace {

template <typename Module>
class Step {
 public:
  explicit Step(const LstmSizes& sizes)
      : module_({.in = sizes.hidden, .hidden = sizes.hidden, .layers = sizes.layers}),
        x_(Tensor<float>::full({sizes.batch, sizes.time, sizes.hidden}, 0.1F)) {
    module_.initialize({.seed = 1});
  }

  void run() {
    Tape tape;
    const auto x = watch(x_, [](const Tensor<float>&) {});
    module_.forward(x).out.backward();
    module_.store().clear_gradients();
  }

 private:
  Module module_;
  Tensor<float> x_;
};

}  // namespace

int main(int argc, char** argv) {
  CommandLine command("Measures forward and backward of LSTM and GRU");
  LstmSizes sizes;
  int threads = 1;
  int steps = 9;
  std::string json;
  std::string turns;
  command.option("--batch", sizes.batch, "sequences");
  command.option("--time", sizes.time, "steps of a sequence");
  command.option("--hidden", sizes.hidden, "of the input too");
  command.option("--layers", sizes.layers, "one upon the other");
  command.option("--threads", threads, "OpenMP threads");
  command.option("--steps", steps, "measured, after one that is not");
  command.option("--json", json, "write the figures here");
  command.option("--turns", turns, "a folder: take turns with other programs, see measurement/turns.hpp");
  if (const auto code = command.parse(argc, argv)) return *code;
  omp_set_num_threads(threads);

  Step<nn::Lstm<Float32>> lstm(sizes);
  Step<nn::Gru<Float32>> gru(sizes);
  OnednnLstm onednn(sizes);
  if (!turns.empty()) {
    return take_turns(0, turns, [&](const std::string& name) {
      if (name == "lstm") return seconds_of([&] { lstm.run(); });
      if (name == "gru") return seconds_of([&] { gru.run(); });
      if (name != "onednn") refuse_turn(name);
      return seconds_of([&] { onednn.run(); });
    });
  }
  std::vector<double> of_lstm, of_gru, of_onednn;
  for (int step = 0; step <= steps; ++step) {  // in turn, so that all see the same machine
    const std::array seconds{seconds_of([&] { lstm.run(); }), seconds_of([&] { gru.run(); }),
                             seconds_of([&] { onednn.run(); })};
    if (step == 0) continue;
    of_lstm.push_back(seconds[0]);
    of_gru.push_back(seconds[1]);
    of_onednn.push_back(seconds[2]);
  }
  const double ours = median(of_lstm);
  const double theirs = median(of_onednn);
  // Input and recurrent product, each once forward and twice backward.
  const double operations =
      3.0 * 2 * 8 * static_cast<double>(sizes.layers * sizes.batch * sizes.time * sizes.hidden * sizes.hidden);
  fmt::print("batch {}, time {}, hidden {}, {} layers, {} thread(s): medians of {} steps\n", sizes.batch, sizes.time,
             sizes.hidden, sizes.layers, threads, steps);
  fmt::print("LSTM                {:8.2f} ms  {:6.1f} GFLOP/s\n", 1e3 * ours, operations / ours / 1e9);
  fmt::print("oneDNN's primitive  {:8.2f} ms  ours: {:.2f}x the speed\n", 1e3 * theirs, theirs / ours);
  fmt::print("GRU                 {:8.2f} ms\n", 1e3 * median(of_gru));
  write_json(json, {{"lstm_seconds", ours}, {"gru_seconds", median(of_gru)}, {"onednn_seconds", theirs}});
}
