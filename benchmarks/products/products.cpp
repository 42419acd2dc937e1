// Every matrix product and convolution of common models, with the share of the fused multiply-add peak that each way to compute
// it reaches; the ways take turns. One thread, float32.
//   products [--models gpt-124m resnet-50] [--batches 1 8 32] [--isa avx2] [--json FILE]
// The peak is measured again before each of them, since a processor's clock changes.
// OpenBLAS or BLIS is another way where it is installed: --blas FILE.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "measurement/fma_peak.hpp"
#include "measurement/measurement.hpp"
#include "products/shapes.hpp"
#include "products/ways.hpp"
#include "trireme/device/isa.hpp"

namespace {

struct Settings {
  double least_seconds = 0;  // to measure the ways of a shape
  double most_operations = 0;
};

// Total time of each way for a model: each shape counts as often as a step has it, with the library's time where a way lacks
// it.
struct Totals {
  double operations = 0;
  double seconds_at_peak = 0;
  std::vector<double> seconds = {};  // by way
  std::vector<bool> exists = {};     // likewise, for any shape

  void add(double of_shape, double peak, int times, const std::vector<double>& of_ways) {
    operations += times * of_shape;
    seconds_at_peak += times * of_shape / peak;
    seconds.resize(of_ways.size());
    exists.resize(of_ways.size());
    for (std::size_t way = 0; way < of_ways.size(); ++way) {
      seconds[way] += times * (of_ways[way] > 0 ? of_ways[way] : of_ways[0]);
      if (of_ways[way] > 0) exists[way] = true;
    }
  }
  std::vector<double> of_existing() const {
    std::vector<double> of_ways = seconds;
    for (std::size_t way = 0; way < of_ways.size(); ++way) {
      if (!exists[way]) of_ways[way] = 0;
    }
    return of_ways;
  }
};

// The median seconds of each way, 0 where it can't run. At least three rounds.
std::vector<double> measure(const std::vector<Way>& ways, double least_seconds) {
  std::vector<std::vector<double>> seconds(ways.size());
  double total = 0;
  for (int round = -1; round < 3 || total < least_seconds; ++round) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      if (!ways[way].run) continue;
      const double taken = seconds_of(ways[way].run);
      if (round < 0) continue;
      seconds[way].push_back(taken);
      total += taken;
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& of_way : seconds) medians.push_back(of_way.empty() ? 0 : median(of_way));
  return medians;
}

void print_head(const std::string& title, const std::vector<Way>& ways) {
  fmt::print("\n| {} | GFLOP |", title);
  for (const Way& way : ways) fmt::print(" {} |", way.name);
  fmt::print("\n|---|---|");
  for (std::size_t way = 0; way < ways.size(); ++way) fmt::print("---|");
  fmt::print("\n");
}

std::vector<double> print_row(const std::string& name, double operations, const std::vector<double>& seconds,
                              double seconds_at_peak) {
  std::vector<double> shares;
  fmt::print("| {} | {:.3f} |", name, operations * 1e-9);
  for (const double taken : seconds) {
    shares.push_back(taken > 0 ? seconds_at_peak / taken : 0);
    fmt::print("{}", taken > 0 ? fmt::format(" {:.0f} % |", 100 * shares.back()) : " |");
  }
  fmt::print("\n");
  std::fflush(stdout);
  return shares;
}

template <typename Layer, typename WaysOf>
void measure_layers(const std::string& title, const std::vector<Layer>& layers, const Settings& settings,
                    const WaysOf& ways_of_pass, nlohmann::ordered_json& figures) {
  Totals totals;
  for (const Layer& layer : layers) {
    if (layer.operations() > settings.most_operations) {
      fmt::print("\nleft out: {}, {} ({:.0f} GFLOP)\n", title, layer.name(), layer.operations() * 1e-9);
      continue;
    }
    for (const LayerPass pass : layer.passes) {
      const std::vector<Way> ways = ways_of_pass(layer, pass);
      if (totals.operations == 0) print_head(title, ways);
      const double peak = measure_fma_peak();
      const std::vector<double> seconds = measure(ways, settings.least_seconds);
      totals.add(layer.operations(), peak, layer.times, seconds);
      const std::string name = fmt::format("{}, {}", layer.name(), name_of(pass));
      const std::vector<double> shares = print_row(name, layer.operations(), seconds, layer.operations() / peak);
      for (std::size_t way = 0; way < ways.size(); ++way) figures[title][name][ways[way].name] = shares[way];
    }
  }
  if (totals.operations > 0) {
    print_row("all of a step", totals.operations, totals.of_existing(), totals.seconds_at_peak);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models = model_names();
  std::vector<std::int64_t> batches{1, 8, 32};
  Settings settings{.least_seconds = 0.1, .most_operations = 50};
  std::string isa;
  std::vector<std::string> blas_files{"libopenblas.so.0", "libblis.so.4"};
  std::string json_path;
  CommandLine command("The share of the peak that each way to compute a model's matrix products and convolutions reaches");
  command.option("--models", models, fmt::format("of {}", fmt::join(model_names(), ", ")));
  command.option("--batches", batches, "sequences or images in a step");
  command.option("--isa", isa, "the instruction set of all ways and of the peak: else the processor's best",
                 {"avx2", "avx512"});
  command.option("--seconds", settings.least_seconds, "the least time to measure each shape");
  command.option("--most", settings.most_operations, "GFLOP of a shape; larger ones are left out");
  command.option("--blas", blas_files, "libraries with cblas_sgemm; the first that can be loaded is measured");
  command.option("--json", json_path, "write the shares here");
  if (const auto code = command.parse(argc, argv)) return *code;
  settings.most_operations *= 1e9;
  for (const std::string& model : models) {
    if (std::ranges::count(model_names(), model) > 0) continue;
    fmt::print(stderr, "products: there is no model \"{}\"; use some of {}\n", model, fmt::join(model_names(), ", "));
    return 2;
  }

  // Before any computation, since each library reads this only once.
  omp_set_num_threads(1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  setenv("BLIS_NUM_THREADS", "1", 1);
  if (isa == "avx2") {
    setenv("TRIREME_ISA", "avx2", 1);
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    setenv("BLIS_ARCH_TYPE", "haswell", 1);
  } else {
    if (isa == "avx512") setenv("TRIREME_ISA", "avx512", 1);
    if (trireme::device::current_isa() == trireme::device::Isa::avx512) {
      setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);  // OpenBLAS does not recognise every processor
    }
  }
  isa = trireme::device::name_of(trireme::device::current_isa());
  tune_malloc();
  const double peak = measure_fma_peak();
  const Blas blas(blas_files);
  fmt::print("{}: peak {:.1f} GFLOP/s of one thread at the start; BLAS: {}\n", isa, peak * 1e-9,
             blas ? blas.file() : "none is installed");

  nlohmann::ordered_json figures;
  figures["isa"] = isa;
  figures["peak"] = peak;
  for (const std::string& model : models) {
    for (const std::int64_t batch : batches) {
      const ModelShapes shapes = shapes_of(model, batch);
      const std::string title = fmt::format("{}, batch {}", model, batch);
      measure_layers(
          title, shapes.linear, settings, [&](const auto& layer, LayerPass pass) { return ways_of(layer, pass, blas); },
          figures);
      measure_layers(
          title, shapes.convolutions, settings, [](const auto& layer, LayerPass pass) { return ways_of(layer, pass); },
          figures);
    }
  }
  write_json(json_path, figures);
  return 0;
}
