#include "compression_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "backward_function.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/trireme.hpp"

namespace trireme::tests {
namespace {

using parallel::CommunicationHook;
using parallel::CompressionBetween;
using Plane = std::vector<double>;

// Gradients that are written rather than computed.
using Written = std::function<double(const ParameterInfo&, std::int64_t index, int step, int rank)>;

double noise(const ParameterInfo& parameter, std::int64_t index, int step, int rank) {
  const auto seed = static_cast<std::uint64_t>(step * 64 + rank);
  return 2 * philox_uniform(seed, hash_name(parameter.name), static_cast<std::uint64_t>(index)) - 1;
}

// Every matrix of rank 2, the same columns in every step and rank.
double low_rank(const ParameterInfo& parameter, std::int64_t index, int step, int rank) {
  const auto row = static_cast<double>(index / parameter.shape.back());
  const auto column = static_cast<double>(index % parameter.shape.back());
  return std::sin(row) * std::cos(column * (1 + rank)) + std::cos(row) * std::sin(column + step);
}

struct Net : nn::Module<Float32> {
  std::vector<Parameter<float>> all = {add_parameter("wide", {64, 301}, Initializer::uniform(-1, 1)),
                                       add_parameter("bias", {37}, Initializer::uniform(-1, 1)),
                                       add_parameter("cube", {3, 40, 50}, Initializer::uniform(-1, 1)),
                                       add_parameter("long", {2000}, Initializer::uniform(-1, 1)),
                                       add_parameter("large", {170, 130}, Initializer::uniform(-1, 1)),
                                       add_parameter("narrow", {500, 2}, Initializer::uniform(-1, 1)),
                                       add_parameter("second", {170, 130}, Initializer::uniform(-1, 1)),
                                       add_parameter("last", {5}, Initializer::uniform(-1, 1))};

  Net() { initialize({.seed = 5}); }

  Loss<float, Cpu> loss(const Written& written, int step, int rank) const {
    Variable<float> sum = Tensor<float>::zeros({1});
    for (const auto& parameter : all) {
      const auto write = [&written, parameter, step, rank](const auto& dy, const auto& dsum, const auto& dweight) {
        dweight.contribute([&](Tensor<float>& out, bool) {
          for (std::int64_t index = 0; index < out.numel(); ++index) {
            out.data()[index] = static_cast<float>(written(parameter.info(), index, step, rank));
          }
        });
        dsum.contribute([&](Tensor<float>& out, bool) { out.data()[0] = dy.data()[0]; });
      };
      sum = record(tests::BackwardFunction{"written gradients", write}, Result<float>{.existing = Tensor<float>::zeros({1})},
                   sum, parameter.variable());
    }
    return {.sum = sum, .target_weight = 1, .nominal_targets = 1};
  }
};

struct Run {
  parallel::HookFactory hook;
  CompressionBetween between = CompressionBetween::ranks;
  Written written = noise;
  std::int64_t bucket_bytes = 60'000;
  std::int64_t start = 0;
};

parallel::GradientSum sum_of(const Run& run) {
  if (run.hook == nullptr) return parallel::Plain{};
  return parallel::Hooked{{.hook = run.hook, .start = run.start, .only_if_faster = false, .between = run.between}};
}

class Trial {
 public:
  Trial(const Group& world, const Run& run)
      : world_(world),
        written_(run.written),
        replicas_(net_, ProcessMesh(world), {.sum = sum_of(run), .buckets = {.bytes = run.bucket_bytes, .first_bytes = 100}}) {}

  // The reduced gradients of all parameters in a step, which all ranks hold with the same bits.
  Plane step(int number) {
    parallel::Step step = replicas_.begin(number);
    step.backward(0, [&] { return net_.loss(written_, number, world_.rank()); });
    step.finish();
    const std::span<const float> gradients = net_.store().gradients<float>().span();
    require_same(world_, "result", {{"gradients", fmt::format("{:016x}", digest<float>("gradients", gradients))}});
    return {gradients.begin(), gradients.end()};
  }

  // The sum over the ranks of what was written.
  Plane written_sum(int step) {
    return fill([&](const ParameterInfo& info, std::int64_t index) {
      double sum = 0;
      for (int rank = 0; rank < world_.size(); ++rank) sum += static_cast<float>(written_(info, index, step, rank));
      return sum;
    });
  }

  // The sum over the ranks of the errors they keep.
  Plane error_sum() {
    std::map<std::string, Tensor<float>> errors;
    for (const auto& [name, values] : replicas_.compression_state()) errors[name] = values;
    Plane sum = fill([&](const ParameterInfo& info, std::int64_t index) {
      const auto error = errors.find(info.name + ".error");
      return error == errors.end() ? 0.0 : static_cast<double>(error->second.data()[index]);
    });
    world_.all_reduce(std::span(sum)).wait_on_host();
    return sum;
  }

  parallel::DataParallel& replicas() { return replicas_; }
  FlatStore& store() { return net_.store(); }

 private:
  template <typename Value>
  Plane fill(const Value& value) {
    Plane plane(static_cast<std::size_t>(net_.store().trainable_numel()));
    for (const auto& parameter : net_.all) {
      const ParameterInfo& info = parameter.info();
      for (std::int64_t index = 0; index < info.numel; ++index) {
        plane[static_cast<std::size_t>(info.offset + index)] = value(info, index);
      }
    }
    return plane;
  }

  const Group& world_;
  Written written_;
  Net net_;
  parallel::DataParallel replicas_;
};

void add_to(Plane& sum, const Plane& values) { std::ranges::transform(sum, values, sum.begin(), std::plus()); }

double largest_difference(const Plane& a, const Plane& b) {
  double largest = 0;
  for (std::size_t index = 0; index < a.size(); ++index) {
    const double difference = std::abs(a[index] - b[index]);
    if (!(difference <= largest)) largest = difference;  // nan counts
  }
  return largest;
}

class Problems {
 public:
  void expect_close(const std::string& what, const Plane& got, const Plane& wanted, double tolerance) {
    const double difference = largest_difference(got, wanted);
    if (!(difference <= tolerance)) list.push_back(fmt::format("{}: off by {}, allowed are {}", what, difference, tolerance));
  }
  void expect(bool ok, const std::string& what) {
    if (!ok) list.push_back(what);
  }

  std::vector<std::string> list;
};

constexpr std::array betweens = {CompressionBetween::ranks, CompressionBetween::nodes};

std::string text(const Run& run) {
  return fmt::format("{} between {}, buckets of {} bytes", run.hook()->str(),
                     run.between == CompressionBetween::ranks ? "ranks" : "nodes", run.bucket_bytes);
}

// Each step on its own: the sum, up to the rounding of the code for values below 1 on each rank.
void check_single_steps(const Group& world, const std::string& name, double tolerance, const Written& written,
                        Problems& problems) {
  for (const auto between : betweens) {
    for (const std::int64_t bucket_bytes : {1, 60'000}) {
      const Run run{
          .hook = parallel::parse_compression(name), .between = between, .written = written, .bucket_bytes = bucket_bytes};
      Trial trial(world, run);
      for (int step = 0; step < 3; ++step) {
        problems.expect_close(text(run), trial.step(step), trial.written_sum(step), tolerance * world.size());
      }
    }
  }
}

// A later step sends what a step loses: the sum of everything sent and of the kept errors is the sum of all gradients.
void check_error_feedback(const Group& world, const Run& run, int steps, Problems& problems) {
  Trial trial(world, run);
  Plane sent(static_cast<std::size_t>(trial.store().trainable_numel()));
  Plane written = sent;
  double lost = 0;
  for (int step = 0; step < steps; ++step) {
    const Plane reduced = trial.step(step);
    const Plane wanted = trial.written_sum(step);
    lost = std::max(lost, largest_difference(reduced, wanted));
    add_to(sent, reduced);
    add_to(written, wanted);
  }
  const auto decision = trial.replicas().compression_decision();
  const bool on = decision && decision->on;
  const bool network = world.size() > 1 && (run.between == CompressionBetween::ranks || !world.on_one_node());
  problems.expect(on == network, text(run) + ": " + (decision ? decision->text : "no decision"));
  problems.expect(!on || lost > 0.1, text(run) + ": nothing was left out, so nothing is tested");
  add_to(sent, trial.error_sum());
  problems.expect_close(text(run) + ", all that was sent and is kept", sent, written, 2e-4 * steps);
}

// The state that is kept from step to step continues in another object without a difference.
void check_state(const Group& world, const std::string& name, CompressionBetween between, Problems& problems) {
  Trial first(world, {.hook = parallel::parse_compression(name), .between = between});
  for (int step = 0; step < 3; ++step) first.step(step);
  Trial second(world, {.hook = parallel::parse_compression(name), .between = between, .bucket_bytes = 1 << 20});
  const auto saved = first.replicas().compression_state();
  const auto restored = second.replicas().compression_state();
  problems.expect(saved.size() == restored.size(), name + ": the state has another size");
  for (std::size_t index = 0; index < saved.size(); ++index) {
    problems.expect(saved[index].name == restored[index].name, name + ": the state has other names");
    std::ranges::copy(saved[index].values.span(), restored[index].values.data());
  }
  for (int step = 3; step < 5; ++step) {
    problems.expect_close(name + ", restored", second.step(step), first.step(step), name == "topk:0.05" ? 0 : 1e-4);
  }
}

// Top-k as in the papers, for one parameter: sort, send, keep. Velocities and errors of all ranks.
class TopKReference {
 public:
  TopKReference(int ranks, std::int64_t numel, double ratio, double momentum)
      : numel_(numel),
        count_(static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(numel)))),
        momentum_(momentum),
        velocity_(static_cast<std::size_t>(ranks), std::vector<float>(static_cast<std::size_t>(numel))),
        error_(velocity_) {}

  std::vector<float> step(const Written& written, const ParameterInfo& info, int step) {
    std::vector<float> sum(static_cast<std::size_t>(numel_));
    for (std::size_t rank = 0; rank < error_.size(); ++rank) {
      std::vector<std::size_t> order(sum.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      auto& velocity = velocity_[rank];
      auto& error = error_[rank];
      for (std::size_t index = 0; index < sum.size(); ++index) {
        velocity[index] = static_cast<float>(momentum_) * velocity[index] +
                          static_cast<float>(written(info, static_cast<std::int64_t>(index), step, static_cast<int>(rank)));
        error[index] += velocity[index];
      }
      std::ranges::stable_sort(order, std::greater(), [&](std::size_t index) { return std::abs(error[index]); });
      order.resize(count_);
      for (const std::size_t index : order) {
        sum[index] += error[index];
        velocity[index] = 0;
        error[index] = 0;
      }
    }
    return sum;
  }

 private:
  std::int64_t numel_;
  std::size_t count_;
  double momentum_;
  std::vector<std::vector<float>> velocity_;  // by rank
  std::vector<std::vector<float>> error_;
};

void check_top_k(const Group& world, double momentum, Problems& problems) {
  const parallel::TopKOptions options{.ratio = 0.01, .momentum = momentum};
  Trial trial(world, {.hook = top_k_hook(options)});
  if (world.size() == 1 && momentum == 0) return;  // nothing is compressed
  const ParameterInfo& info = trial.store().parameter(trial.store().find("large"));
  TopKReference reference(world.size(), info.numel, options.ratio, momentum);
  for (int step = 0; step < 6; ++step) {
    const Plane got = trial.step(step);
    const std::vector<float> wanted = reference.step(noise, info, step);
    const auto begin = got.begin() + info.offset;
    problems.expect_close(fmt::format("top-k with momentum {}, step {}, against a sort", momentum, step),
                          Plane(begin, begin + info.numel), Plane(wanted.begin(), wanted.end()), 1e-5);
  }
}

// Fewer elements every two steps, as the warm-up says.
void check_warmup(const Group& world, Problems& problems) {
  if (world.size() == 1) return;
  const parallel::TopKOptions options{.ratio = 0.002, .warmup_steps = 2, .warmup = {0.25, 0.05}, .dense_below = 0};
  Trial trial(world, {.hook = top_k_hook(options), .start = 1});
  for (int step = 0; step < 7; ++step) {
    const Plane got = trial.step(step);
    const ParameterInfo& info = trial.store().parameter(trial.store().find("large"));
    const auto sent =
        static_cast<double>(info.numel - std::count(got.begin() + info.offset, got.begin() + info.offset + info.numel, 0.0));
    const double ratio = step < 1 ? 1 : step < 3 ? 0.25 : step < 5 ? 0.05 : 0.002;
    const auto least = std::ceil(ratio * static_cast<double>(info.numel));
    problems.expect(sent >= least && sent <= least * world.size(),
                    fmt::format("step {} of the warm-up sent {} elements", step, sent));
  }
}

// Bytes to other nodes, where there are some.
void check_bytes(const Group& world, Problems& problems) {
  if (world.on_one_node()) return;
  const auto bytes_of = [&](const parallel::HookFactory& hook) {
    Trial trial(world, {.hook = hook, .between = CompressionBetween::nodes, .bucket_bytes = 1 << 20});
    trial.step(0);
    const std::uint64_t before = trial.replicas().bytes_sent();
    trial.step(1);
    auto bytes = static_cast<double>(trial.replicas().bytes_sent() - before);
    world.all_reduce(std::span(&bytes, 1)).wait_on_host();
    return bytes;
  };
  const double dense = bytes_of(nullptr);
  const double slack = 2000.0 * world.size();
  for (const auto& [name, share] :
       std::map<std::string, double>{{"fp16", 0.5}, {"bf16", 0.5}, {"int8", 0.26}, {"topk:0.01", 0.06}, {"powersgd:2", 0.12}}) {
    const double bytes = bytes_of(parallel::parse_compression(name));
    problems.expect(bytes <= share * dense + slack, fmt::format("{} sends {} bytes, dense {}", name, bytes, dense));
  }
}

// The trial is the same for all ranks and leaves nothing behind.
void check_trial(const Group& world, Problems& problems) {
  Net net;
  parallel::DataParallel replicas(
      net, ProcessMesh(world),
      {.sum = parallel::Hooked{
           {.hook = parallel::parse_compression("powersgd:2"), .start = 1, .between = CompressionBetween::ranks}}});
  std::vector<float> before;
  for (int number = 0; number < 2; ++number) {
    if (number == 1) {
      for (const auto& [name, values] : replicas.compression_state())
        before.insert(before.end(), values.span().begin(), values.span().end());
      problems.expect(!replicas.compression_decision(), "decided before the first compressed step");
    }
    const parallel::Step step = replicas.begin(number);
  }
  std::vector<float> after;
  for (const auto& [name, values] : replicas.compression_state())
    after.insert(after.end(), values.span().begin(), values.span().end());
  problems.expect(before == after, "the trial changed what the hook keeps");
  const auto decision = replicas.compression_decision();
  if (!decision) return problems.expect(false, "nothing was decided");
  require_same(world, "decision", {{"text", decision->text}});
  problems.expect(world.size() == 1 || (decision->dense_seconds > 0 && decision->compressed_seconds > 0), decision->text);
  problems.expect(decision->on == (decision->compressed_seconds < decision->dense_seconds), decision->text);
}

}  // namespace

std::vector<std::string> compression_problems(const Group& world) {
  Problems problems;
  check_single_steps(world, "fp16", 1.0 / 1024, noise, problems);
  check_single_steps(world, "bf16", 1.0 / 128, noise, problems);
  check_single_steps(world, "int8", 1.0 / 127, noise, problems);
  check_single_steps(world, "topk:1", 1e-6, noise, problems);
  check_single_steps(world, "powersgd:4", 2e-5, low_rank, problems);
  for (const std::string name : {"topk:0.05", "powersgd:2"}) {
    for (const auto between : betweens) {
      check_error_feedback(world, {.hook = parallel::parse_compression(name), .between = between}, 8, problems);
      check_state(world, name, between, problems);
    }
  }
  check_error_feedback(world, {.hook = parallel::parse_compression("topk:0.05"), .start = 3}, 8, problems);
  check_top_k(world, 0, problems);
  check_top_k(world, 0.9, problems);
  check_warmup(world, problems);
  check_bytes(world, problems);
  check_trial(world, problems);
  return problems.list;
}

}  // namespace trireme::tests
