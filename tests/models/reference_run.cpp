#include "models/reference_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace trireme::tests {

using nlohmann::json;

void RunReport::expect(bool ok, const std::string& text) {
  if (ok) return;
  ++failures_;
  std::fprintf(stderr, "%s, rank %d: %s\n", run_.c_str(), world_.rank(), text.c_str());
}

namespace {

template <typename T>
std::vector<float> floats(const Tensor<T>& values) {
  return {values.data(), values.data() + values.numel()};
}

// Some runs have all fields in `hyper`, others those of the optimizer in `hyper.optim`.
const json& optimizer_fields(const json& hyper) { return hyper.contains("optim") ? hyper.at("optim") : hyper; }

}  // namespace

template <typename P>
std::unique_ptr<optim::Optimizer<P>> make_optimizer(const json& hyper, FlatStore& store) {
  const json& fields = optimizer_fields(hyper);
  std::string name = fields.at(fields.contains("name") ? "name" : "optimizer");
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  optim::NamedOptions options{.learning_rate = fields.at("lr"),
                              .weight_decay = fields.value("weight_decay", 0.0),
                              .beta1 = fields.value("momentum", 0.0),
                              .nesterov = fields.value("nesterov", false),
                              .decay = fields.value("decay", "all") == "all" ? optim::Decay::all : optim::Decay::matrices};
  if (fields.contains("betas")) {
    options.beta1 = fields.at("betas")[0];
    options.beta2 = fields.at("betas")[1];
  }
  if (fields.contains("eps")) options.epsilon = fields.at("eps");
  return optim::make_optimizer<P>(name, store, options);
}

template std::unique_ptr<optim::Optimizer<Float32>> make_optimizer(const json&, FlatStore&);
template std::unique_ptr<optim::Optimizer<Float64>> make_optimizer(const json&, FlatStore&);
template std::unique_ptr<optim::Optimizer<MixedBfloat16>> make_optimizer(const json&, FlatStore&);
template std::unique_ptr<optim::Optimizer<MixedFloat16>> make_optimizer(const json&, FlatStore&);

optim::Schedule make_schedule(const json& hyper) {
  const double base = optimizer_fields(hyper).at("lr");
  if (!hyper.contains("schedule")) return optim::constant(base);
  const json& rule = hyper.at("schedule");
  return optim::warmup_cosine({.base = base,
                               .warmup = rule.at("warmup"),
                               .total = rule.at("total"),
                               .minimum = base * rule.at("min_ratio").get<double>()});
}

double clip_norm_of(const json& hyper) {
  return hyper.contains("clip") && hyper.at("clip").is_number() ? hyper.at("clip").get<double>() : 0;
}

Tensor<std::int32_t> rows_of(const std::vector<std::int64_t>& all, const Shape& shape, std::int64_t step, std::int64_t first,
                             std::int64_t count) {
  Tensor<std::int32_t> part({count, shape[2]});
  const std::int64_t begin = (step * shape[1] + first) * shape[2];
  for (std::int64_t index = 0; index < part.numel(); ++index) {
    part.data()[index] = static_cast<std::int32_t>(all[static_cast<std::size_t>(begin + index)]);
  }
  return part;
}

double compare_step(const Fixture& fixture, std::int64_t step, const StepSummary& summary, RunReport& report,
                    double mixed_bound) {
  const auto at = static_cast<std::size_t>(step);
  const json& values = fixture.index.at("values");
  const json& tolerance = fixture.index.at("tolerance");
  const double loss_bound = mixed_bound > 0 ? mixed_bound : tolerance.at("loss_abs").get<double>();
  const double difference = std::abs(summary.loss() - values.at("loss_f64")[at].get<double>());
  report.expect(difference <= loss_bound, fmt::format("step {}: loss {} is off by {}", step, summary.loss(), difference));
  if (mixed_bound > 0) return difference;
  const double norm = values.at("grad_norm")[at];
  const double norm_bound =
      tolerance.contains("grad_step0") ? tolerance.at("grad_step0").at("rtol").get<double>() * norm : loss_bound;
  report.expect(std::abs(summary.gradient_norm - norm) <= norm_bound,
                fmt::format("step {}: gradient norm {}, wanted {}", step, summary.gradient_norm, norm));
  return difference;
}

ValuesOf values_in(FlatStore& store) {
  return [&store](int index) {
    return store.dtype() == DType::float64 ? floats(store.values<double>(index)) : floats(store.values<float>(index));
  };
}

void compare_tensors(const Fixture& fixture, const std::string& prefix, Tolerance tolerance, FlatStore& store,
                     const ValuesOf& values_of, RunReport& report, const Adapt& adapt) {
  const SafetensorsFile expected = fixture.tensors();
  bool any = false;
  for (const auto& entry : expected.tensors()) {
    if (!entry.name.starts_with(prefix)) continue;
    any = true;
    const std::string name = entry.name.substr(prefix.size());
    const bool known = store.find(name) >= 0 || store.buffers().find(name) >= 0 || name.ends_with(".num_batches_tracked");
    report.expect(known, fmt::format("{} is no parameter or buffer of the model", entry.name));
  }
  if (!any) return;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    if (expected.find(prefix + parameter.name) == nullptr) {
      report.expect(false, fmt::format("there is no tensor {}{}", prefix, parameter.name));
      continue;
    }
    std::vector<float> got = values_of(index);
    std::vector<float> wanted = read_floats(expected, prefix + parameter.name);
    if (adapt) adapt(parameter, got, wanted);
    const std::string worst = tests::mismatch(got, wanted, tolerance);
    report.expect(worst.empty(), fmt::format("{}{}: {}", prefix, parameter.name, worst));
  }
}

void compare_buffers(const Fixture& fixture, const std::string& prefix, Tolerance tolerance, FlatStore& store,
                     RunReport& report) {
  const SafetensorsFile expected = fixture.tensors();
  for (int index = 0; index < store.buffers().size(); ++index) {
    const std::string name = prefix + store.buffers().info(index).name;
    const std::vector<float> values = store.dtype() == DType::float64 ? floats(store.buffers().values<double>(index))
                                                                      : floats(store.buffers().values<float>(index));
    const std::string worst = tests::mismatch(values, read_floats(expected, name), tolerance);
    report.expect(worst.empty(), fmt::format("{}: {}", name, worst));
  }
}

int run_fixtures(const Group& world, const std::string& model, const std::function<int(const Fixture&)>& run) {
  int failures = 0;
  int runs = 0;
  for (const Fixture& fixture : fixtures_of_kind("training_run")) {
    if (fixture.index.at("model") != model) continue;
    failures += run(fixture);
    ++runs;
  }
  world.all_reduce(std::span(&failures, 1)).wait_on_host();
  return failures == 0 && runs > 0 ? 0 : 1;
}

int run_on_ranks(int argc, char** argv, const std::function<int(const Group&)>& run) {
  if (!refs_folder()) skip_program("the reference results are missing");
  const std::string backend = argc > 1 ? argv[1] : "mpi";
  return launch(parse_backend(backend), {.ranks = argc > 2 ? std::atoi(argv[2]) : 1}, run);
}

}  // namespace trireme::tests
