// Compares each optimizer's step with the speed at which this machine copies memory, and with the speed at which it changes
// memory in place, as optimizers do. The goal is 85 % of the copy. Steps over a transformer's parameters and passes over as
// many elements run in turn.

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "measurement/turns.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

// The blocks of a GPT: four matrices, their biases, two norms.
struct Blocks {
  Model model{DType::float32};
  FlatStore& store = model.store();

  Blocks(int layers, std::int64_t width) {
    for (int layer = 0; layer < layers; ++layer) {
      const auto add = [&](const char* name, const Shape& shape) {
        store.add(fmt::format("h.{}.{}", layer, name), shape, Initializer::uniform(-0.02, 0.02));
      };
      const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
        add((name + ".weight").c_str(), {out, in});
        add((name + ".bias").c_str(), {out});
      };
      const auto norm = [&](const std::string& name) {
        add((name + ".weight").c_str(), {width});
        add((name + ".bias").c_str(), {width});
      };
      norm("ln_1");
      linear("attn.c_attn", width, 3 * width);
      linear("attn.c_proj", width, width);
      norm("ln_2");
      linear("mlp.c_fc", width, 4 * width);
      linear("mlp.c_proj", 4 * width, width);
    }
    store.initialize<float>(1);
    for (float& gradient : store.gradients<float>().span()) gradient = 1e-3F;
  }
};

// The bytes that a step must read and write for one parameter: its weight, gradient and state.
struct Traffic {
  const char* optimizer;
  double bytes;
};
constexpr Traffic traffic[] = {
    {"sgd", 20},                   // reads w g v, writes w v
    {"adam", 28},                  // reads w g m v, writes w m v
    {"adamw", 28},                 //
    {"adamw_8bit", 16 + 1 / 16.},  // reads w g and codes of 8 bits, writes w and codes; four magnitudes for 256
    {"lamb", 40},                  // reads w g m v, writes m v; then reads w m v, writes w
    {"lars", 28},                  // reads w g; then as sgd
    {"rmsprop", 28},               // with momentum
    {"adagrad", 20},               //
    {"lion", 20},                  //
    {"nadam", 28},                 // as adam
    {"radam", 28},                 //
    {"schedule_free_adamw", 28},   //
    {"adadelta", 28},              //
    {"adafactor", 16},             // reads g for the means, then w g, writes w; it takes several passes
    {"muon", 20},                  // reads w g m, writes w m; its matrix products come on top
};

// The step, the copy and the change in place of every optimizer's parameters, for both ways to measure them.
class Passes {
 public:
  Passes(int layers, std::int64_t width) : model_(layers, width) {}

  double count() { return static_cast<double>(model_.store.numel()); }

  double step(const std::string& name) {
    auto& optimizer = optimizers_[name];
    if (!optimizer) {
      optimizer = make(name);
      optimizer->step(summary_);
    }
    return seconds_of([&] { optimizer->step(summary_); });
  }

  double copy() const {
    return seconds_of([&] { std::memcpy(to_.data(), from_.data(), to_.span().size_bytes()); });
  }

  double in_place() const {
    return seconds_of([&] {
      for (float& value : to_.span()) value *= 1.5F;
    });
  }

  void forget(const std::string& name) { optimizers_.erase(name); }

 private:
  std::unique_ptr<optim::Optimizer<Float32>> make(const std::string& name) {
    if (name == "schedule_free_adamw") {
      return std::make_unique<optim::ScheduleFreeAdamW<Float32>>(
          model_.model, optim::ScheduleFreeAdamWOptions{.learning_rate = 1e-5, .weight_decay = 0.1});
    }
    return optim::make_optimizer<Float32>(name, model_.model, {.learning_rate = 1e-5, .weight_decay = 0.1});
  }

  Blocks model_;
  std::map<std::string, std::unique_ptr<optim::Optimizer<Float32>>> optimizers_;
  Tensor<float> from_ = Tensor<float>::full({model_.store.numel()}, 1);
  Tensor<float> to_ = Tensor<float>::full({model_.store.numel()}, 2);
  StepSummary summary_{.target_weight = 1,
                       .gradient_norm = 1,
                       .used = std::vector<bool>(static_cast<std::size_t>(model_.store.num_parameters()), true)};
};

// Seconds by key: "adamw" is its step, "adamw.copy" a copy of as many bytes, "adamw.in_place" a change of as many bytes in
// place.
double measure(Passes& passes, const std::string& name) {
  constexpr double of_a_copy = 2 * sizeof(float);
  for (const auto& [optimizer, bytes] : traffic) {
    if (name == optimizer) return passes.step(name);
    if (name == std::string(optimizer) + ".copy") return passes.copy() * bytes / of_a_copy;
    if (name == std::string(optimizer) + ".in_place") return passes.in_place() * bytes / of_a_copy;
  }
  refuse_turn(name);
}

}  // namespace

int main(int argc, char** argv) {
  int layers = 12;
  std::int64_t width = 768;
  int rounds = 9;
  std::string json_path;
  std::string turns;
  CommandLine command("An optimizer's step against copying memory: float32, this process' threads (OMP_NUM_THREADS).");
  command.option("--layers", layers, "transformer blocks");
  command.option("--width", width, "of the blocks");
  command.option("--rounds", rounds, "of which the median counts");
  command.option("--json", json_path, "write the figures here");
  command.option("--turns", turns, "a folder: take turns with other programs, see measurement/turns.hpp");
  if (const auto code = command.parse(argc, argv)) return *code;

  Passes passes(layers, width);
  if (!turns.empty()) {
    return take_turns(0, turns, [&](const std::string& name) { return measure(passes, name); });
  }
  const double count = passes.count();

  nlohmann::json json;
  fmt::print("{:.1f}M parameters\n{:<20}{:>10}{:>12}{:>9}{:>8}{:>10}{:>10}{:>10}\n", count * 1e-6, "optimizer", "ms",
             "bytes each", "GB/s", "copy", "share", "in place", "share");
  for (const auto& [name, bytes] : traffic) {
    std::vector<double> steps;
    std::vector<double> copies;
    std::vector<double> scalings;
    const int times = std::string_view(name) == "muon" ? 1 : rounds;  // its products take very long
    for (int round = 0; round < times; ++round) {
      copies.push_back(passes.copy());
      scalings.push_back(passes.in_place());
      steps.push_back(passes.step(name));
    }
    passes.forget(name);
    const double seconds = median(steps);
    const double rate = count * bytes / seconds;
    const double copy = count * sizeof(float) * 2 / median(copies);
    const double in_place = count * sizeof(float) * 2 / median(scalings);
    fmt::print("{:<20}{:10.2f}{:12.1f}{:9.1f}{:8.1f}{:8.0f} %{:10.1f}{:8.0f} %\n", name, seconds * 1e3, bytes, rate * 1e-9,
               copy * 1e-9, 100 * rate / copy, in_place * 1e-9, 100 * rate / in_place);
    json[name] = {{"seconds", seconds},
                  {"bytes_per_second", rate},
                  {"copy_bytes_per_second", copy},
                  {"in_place_bytes_per_second", in_place}};
  }
  write_json(json_path, json);
  return 0;
}
