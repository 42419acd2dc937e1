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
std::unique_ptr<optim::Optimizer<P>> make_optimizer(const json& hyper, Model& model) {
  const json& fields = optimizer_fields(hyper);
  std::string name = fields.at(fields.contains("name") ? "name" : "optimizer");
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const std::vector<std::string> names = optim::optimizer_names();
  if (std::ranges::find(names, name) == names.end()) throw SkippedFixture{"there is no optimizer " + name};
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
  return optim::make_optimizer<P>(name, model, options);
}

template std::unique_ptr<optim::Optimizer<Float32>> make_optimizer(const json&, Model&);
template std::unique_ptr<optim::Optimizer<Float64>> make_optimizer(const json&, Model&);
template std::unique_ptr<optim::Optimizer<MixedBfloat16>> make_optimizer(const json&, Model&);
template std::unique_ptr<optim::Optimizer<MixedFloat16>> make_optimizer(const json&, Model&);

optim::LearningRate make_schedule(const json& hyper) {
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

namespace {

Fixture beside(const Fixture& run, const std::string& name) {
  const std::string id = run.id();
  return fixture(id.substr(0, id.rfind('/') + 1) + name);
}

std::int64_t least_rows(std::int64_t batch, std::int64_t time, int num_parts, std::int64_t rows_divide) {
  std::int64_t rows = count_of_part(batch, num_parts);
  while (rows * time % rows_divide != 0) ++rows;
  return rows;
}

}  // namespace

void know_run_options(const Fixture& run, std::initializer_list<std::string_view> config,
                      std::initializer_list<std::string_view> hyper) {
  know_options(run.index.at("config"), config);
  json rest = run.index.at("hyper");
  if (rest.contains("optim")) rest.update(rest.at("optim"));
  for (const char* of_optimizer :
       {"optim", "optimizer", "name", "lr", "betas", "eps", "momentum", "nesterov", "weight_decay", "decay"}) {
    rest.erase(of_optimizer);
  }
  know_options(rest, hyper);
}

Fixture init_of(const Fixture& run) { return beside(run, "init"); }
Fixture batches_of(const Fixture& run) { return beside(run, "batches"); }

std::int64_t steps_of(const Fixture& run, const std::string& losses, std::int64_t num_batches) {
  const std::int64_t steps = std::ssize(run.index.at("values").at(losses));
  require(steps <= num_batches, "{} has losses of {} steps, and batches for {}", run.id(), steps, num_batches);
  return steps;
}

TokenBatches::TokenBatches(const Fixture& run, const SafetensorsFile& batches, int num_parts, std::int64_t rows_divide) {
  const json& hyper = run.index.at("hyper");
  const std::string targets = hyper.value("targets", "targets");
  shape_ = batches.at("input_ids").shape;
  require(shape_.size() == 3 && batches.at(targets).shape == shape_, "{}: input_ids {} and {} {} are no [batches, batch, time]",
          run.id(), shape_, targets, batches.at(targets).shape);
  tokens_ = read_integers(batches, "input_ids");
  targets_ = read_integers(batches, targets);
  rows_ = least_rows(shape_[1], shape_[2], num_parts, rows_divide);
  start_ = hyper.value("start", 0);
  num_steps_ = steps_of(run, "loss_f64", shape_[0] - start_);
}

Tensor<std::int32_t> TokenBatches::part_of(const std::vector<std::int64_t>& all, std::int64_t step, int part,
                                           std::int32_t otherwise) const {
  const auto result = Tensor<std::int32_t>::full({rows_, time()}, otherwise);
  const std::int64_t first = std::min(part * rows_, shape_[1]);
  const std::int64_t end = std::min(first + rows_, shape_[1]);
  const auto begin = all.begin() + ((start_ + step) * shape_[1] + first) * time();
  std::transform(begin, begin + (end - first) * time(), result.data(),
                 [](std::int64_t token) { return static_cast<std::int32_t>(token); });
  return result;
}

Range part_of_batch(std::int64_t batch, int part, int num_parts) {
  return {batch * part / num_parts, batch * (part + 1) / num_parts};
}

double compare_step(const Fixture& fixture, std::int64_t step, const StepSummary& summary, RunReport& report,
                    double mixed_bound) {
  const auto at = static_cast<std::size_t>(step);
  const json& values = fixture.index.at("values");
  const json& tolerance = fixture.index.at("tolerance");
  const double loss_bound = mixed_bound > 0 ? mixed_bound : tolerance.at("loss_abs").get<double>();
  const double difference = std::abs(summary.loss() - values.at("loss_f64").at(at).get<double>());
  report.expect(difference <= loss_bound, fmt::format("step {}: loss {} is off by {}", step, summary.loss(), difference));
  if (mixed_bound > 0) return difference;
  const double norm = values.at("grad_norm").at(at);
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

ValuesOf gradients_in(FlatStore& store, double scale) {
  return [&store, scale](int index) {
    std::vector<float> gradient =
        store.dtype() == DType::float64 ? floats(store.gradient<double>(index)) : floats(store.gradient<float>(index));
    for (float& element : gradient) element = static_cast<float>(scale * static_cast<double>(element));
    return gradient;
  };
}

void compare_first_gradients(const Fixture& fixture, FlatStore& store, const ValuesOf& gradients_of, RunReport& report) {
  const json& tolerance = fixture.index.at("tolerance").at("grad_step0");
  compare_tensors(fixture, "grad_step0.", {.atol = tolerance.at("atol"), .rtol = tolerance.at("rtol")}, store, gradients_of,
                  report);
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
  const auto has_prefix = [&](const SafetensorsEntry& entry) { return entry.name.starts_with(prefix); };
  if (std::ranges::none_of(expected.tensors(), has_prefix)) return;
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
  for (const Fixture& fixture : fixtures_of_kind("training_run")) {
    if (fixture.index.at("model") != model) continue;
    RunReport report(world, fixture.id());
    try {
      failures += run(fixture);
    } catch (const SkippedFixture& skipped) {
      if (world.rank() == 0) list_skipped(fixture.id(), skipped.reason);
    } catch (const std::exception& error) {
      report.expect(false, error.what());
    }
    failures += report.failures();
  }
  world.all_reduce(std::span(&failures, 1)).wait_on_host();
  return failures;
}

int run_on_ranks(int argc, char** argv, const std::vector<std::string>& models, const std::function<int(const Group&)>& run) {
  const std::vector<Fixture> runs = fixtures_of_kind("training_run");
  bool any = false;
  for (const std::string& model : models) {
    const bool found = std::ranges::any_of(runs, [&](const Fixture& fixture) { return fixture.index.at("model") == model; });
    if (!found) list_skipped(model, "the reference results have no training run of it");
    any = any || found;
  }
  if (!any) skip_program("the reference results have no training run of these models");
  const std::string backend = argc > 1 ? argv[1] : "mpi";
  return launch(parse_backend(backend), {.ranks = argc > 2 ? std::atoi(argv[2]) : 1},
                [&](const Group& world) { return run(world) == 0 ? 0 : 1; });
}

}  // namespace trireme::tests
