// Times functions on tensors as a program calls them, with a new result for each call, and memcpy of as many bytes: elementwise
// and broadcast passes, reductions over the first, the middle and the last dim, movements, gathers, one expression of five
// operations.
//   functions_benchmark [--filter sum] [--rounds 15] [--json FILE]
// benchmarks/peers/functions_torch.py is the same in PyTorch.

#include "functions/functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "measurement/turns.hpp"

namespace {

constexpr std::array<std::int64_t, 3> sizes{4 << 10, 256 << 10, 16 << 20};
constexpr double least_seconds = 0.002;  // that a turn takes

// Mean seconds of a call, over enough calls for a turn of least_seconds.
class Timed {
 public:
  explicit Timed(std::function<void()> run) : run_(std::move(run)) {}

  double operator()() {
    if (calls_ == 0) {
      run_();
      calls_ = std::max(1, static_cast<int>(least_seconds / seconds_of(run_)));
    }
    return seconds_of([this] {
             for (int call = 0; call < calls_; ++call) run_();
           }) /
           calls_;
  }

 private:
  std::function<void()> run_;
  int calls_ = 0;
};

// Keys: "add.4096" and "add.4096.copy".
std::map<std::string, Timed> all_timed() {
  std::map<std::string, Timed> timed;
  for (const std::int64_t size : sizes) {
    for (const Function& function : functions_of(size)) {
      const std::string name = fmt::format("{}.{}", function.name, size);
      timed.emplace(name, function.run);
      timed.emplace(name + ".copy", function.copy);
    }
  }
  return timed;
}

}  // namespace

int main(int argc, char** argv) {
  std::string filter;
  int rounds = 15;
  std::string json_path;
  std::string turns;
  CommandLine command("Functions on tensors against copying memory: float32, this process' threads (OMP_NUM_THREADS).");
  command.option("--filter", filter, "only functions whose name contains this");
  command.option("--rounds", rounds, "of which the median counts");
  command.option("--json", json_path, "write the figures here");
  command.option("--turns", turns, "a folder: take turns with other programs, see measurement/turns.hpp");
  if (const auto code = command.parse(argc, argv)) return *code;

  tune_malloc();
  std::map<std::string, Timed> timed = all_timed();
  if (!turns.empty()) {
    return take_turns(0, turns, [&](const std::string& name) {
      const auto found = timed.find(name);
      if (found == timed.end()) refuse_turn(name);
      return found->second();
    });
  }
  nlohmann::ordered_json json;
  fmt::print("{:<24}{:>12}{:>12}\n", "function, bytes of x", "us", "of a copy");
  for (auto& [name, run] : timed) {
    if (name.ends_with(".copy") || name.find(filter) == std::string::npos) continue;
    Timed& copy = timed.at(name + ".copy");
    std::vector<double> seconds;
    std::vector<double> shares;
    for (int round = -1; round < rounds; ++round) {
      const double of_copy = copy();
      const double of_function = run();
      if (round < 0) continue;
      seconds.push_back(of_function);
      shares.push_back(of_copy / of_function);
    }
    fmt::print("{:<24}{:12.2f}{:10.0f} %\n", name, 1e6 * median(seconds), 100 * median(shares));
    json[name] = {{"seconds", median(seconds)}, {"share_of_copy", median(shares)}};
  }
  write_json(json_path, json);
  return 0;
}
