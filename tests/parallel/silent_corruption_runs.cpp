#include "silent_corruption_runs.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "backward_function.hpp"
#include "gpt_mesh_runs.hpp"
#include "state_digest.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/trireme.hpp"

namespace trireme::tests {
namespace {

using parallel::ParallelOptions;
using parallel::Sharding;

constexpr std::int64_t rows = 2;  // of a rank and micro-batch
constexpr int micro_batches = 2;
constexpr models::GptOptions small_gpt{.layers = 4, .heads = 2, .width = 16, .block = gpt_time_steps, .vocabulary = 37};

struct Layout {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  Sharding sharding = Sharding::none;

  int ranks_of_replica() const { return pipeline * tensor; }
  bool on_first_stage(int rank) const { return rank % ranks_of_replica() < tensor; }
  bool on_last_stage(int rank) const { return rank % ranks_of_replica() >= (pipeline - 1) * tensor; }
  std::string str() const {
    return fmt::format("data {} x pipeline {} x tensor {}{}", data, pipeline, tensor,
                       sharding == Sharding::optimizer ? ", sharded" : "");
  }
};

std::vector<Layout> layouts_of(int ranks) {
  if (ranks == 2) return {{.data = 2}, {.data = 2, .sharding = Sharding::optimizer}, {.pipeline = 2}, {.tensor = 2}};
  if (ranks == 3) return {{.data = 3}, {.data = 3, .sharding = Sharding::optimizer}};
  if (ranks == 6) return {{.data = 3, .pipeline = 2}, {.data = 3, .tensor = 2, .sharding = Sharding::optimizer}};
  if (ranks == 8) {
    return {{.data = 2, .pipeline = 2, .tensor = 2}, {.data = 2, .pipeline = 2, .tensor = 2, .sharding = Sharding::optimizer}};
  }
  return {{.data = 4},
          {.data = 2, .pipeline = 2},
          {.data = 2, .tensor = 2},
          {.data = 2, .pipeline = 2, .sharding = Sharding::optimizer},
          {.data = 2, .tensor = 2, .sharding = Sharding::optimizer},
          {.pipeline = 2, .tensor = 2}};
}

// The fault of this rank.
enum class Fault { none, loss_is_nan, backward_makes_inf, gradient_is_inf };

// The same value, whose gradient is inf.
Variable<float> with_inf_gradient(const Variable<float>& x) {
  const auto make_inf = [](const auto& dy, const auto& dx) {
    dx.contribute(
        [&](Tensor<float>& out, bool) { std::fill_n(out.data(), dy.numel(), std::numeric_limits<float>::infinity()); });
  };
  return record(tests::BackwardFunction{"inf in backward", make_inf}, Result<float>{.existing = x.value()}, x);
}

struct FaultyGpt : models::Gpt<Float32> {
  explicit FaultyGpt(const ModelContext& context) : Gpt(small_gpt, context) { initialize({.seed = 7}); }

  // The function that a step calls; this one hides the GPT's.
  nn::Residual<Float32> run_layers(const Range& layers, const nn::Residual<Float32>& x, const data::TokenBatch& batch) const {
    nn::Residual<Float32> y = Gpt::run_layers(layers, x, batch);
    const bool before_loss = layers.end + 1 == static_cast<std::int64_t>(num_layers());
    if (before_loss || fault != Fault::backward_makes_inf) return y;
    return {.stream = with_inf_gradient(y.settled().stream)};
  }
  Loss<float> loss(const Variable<float>& logits, const data::TokenBatch& batch) const {
    Loss<float> loss = Gpt::loss(logits, batch);
    if (fault == Fault::backward_makes_inf) loss.sum = with_inf_gradient(loss.sum);
    if (fault == Fault::loss_is_nan) loss.sum = scale(loss.sum, std::numeric_limits<float>::quiet_NaN());
    return loss;
  }

  Fault fault = Fault::none;
};

class GptRun {
 public:
  GptRun(const Group& world, const Layout& layout, int check_replicas)
      : mesh_(world, {.data = layout.data, .pipeline = layout.pipeline, .tensor = layout.tensor}),
        model_(parallel::model_context(mesh_)),
        replicas_(model_, mesh_, {.sharding = layout.sharding, .check_replicas = check_replicas}),
        optimizer_(model_, {.learning_rate = 0.01}) {}

  // Whether it was taken.
  bool step(std::int64_t number, const optim::UpdateOptions& options = {}, Fault fault = Fault::none) {
    model_.fault = fault;
    parallel::Step step = replicas_.begin(number, micro_batches);
    step.backward(model_, gpt_batches(number, mesh_.data().rank() * micro_batches * rows, micro_batches, rows));
    if (fault == Fault::gradient_is_inf) {  // on one rank of those that hold it all
      store().gradient<float>(store().find("transformer.ln_f.bias")).data()[3] = std::numeric_limits<float>::infinity();
    }
    return step.update(optimizer_, options);
  }

  FlatStore& store() { return model_.store(); }
  parallel::DataParallel& replicas() { return replicas_; }
  optim::AdamW<Float32>& optimizer() { return optimizer_; }

  // Of values, moments and step counts.
  std::uint64_t digest_of_state() {
    State state;
    store().add_to(state, "model.");
    optimizer_.add_to(state);
    return digest_of(state);
  }

 private:
  ProcessMesh mesh_;
  FaultyGpt model_;
  parallel::DataParallel replicas_;
  optim::AdamW<Float32> optimizer_;
};

// The error of `action` on every rank, which must be the same one.
ErrorFields same_error(const Group& world, const std::string& where, const std::function<void()>& action) {
  std::optional<Error> error;
  try {
    action();
  } catch (const Error& caught) {
    error = caught;
  }
  const auto texts = world.gather_texts(error ? error->what() : "no error");
  for (const std::string& text : texts) {
    require(text == texts.front() && error, "{}: the ranks have the errors \"{}\" and \"{}\"", where, texts.front(), text);
  }
  return error->fields();
}

void require_contains(const std::string& where, const std::string& text, const std::string& part) {
  require(text.find(part) != std::string::npos, "{}: \"{}\" does not say \"{}\"", where, text, part);
}

void turn_bit(float& value) { value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U << 9); }

// One that the rank holds.
std::string weight_of(const Layout& layout, int rank) {
  return fmt::format("transformer.h.{}.mlp.c_fc.weight", layout.on_first_stage(rank) ? 1 : 2);
}

// A sharded step replaces all values, so the bit is flipped again before each step, as in a bad memory cell.
void expect_bit_found(const Group& world, const Layout& layout, int num_steps, int culprit) {
  const std::string where = fmt::format("{}, {} steps, rank {}", layout.str(), num_steps, culprit);
  constexpr int first_step = 2;
  constexpr std::int64_t element = 19;
  GptRun run(world, layout, num_steps);
  const std::string weight = weight_of(layout, culprit);
  std::int64_t found_in = -1;
  const ErrorFields error = same_error(world, where, [&] {
    for (int step = 0; step < first_step + num_steps; ++step) {
      found_in = step;
      const bool turn = layout.sharding == Sharding::optimizer ? step >= first_step : step == first_step;
      if (turn && world.rank() == culprit) turn_bit(run.store().values<float>(run.store().find(weight)).data()[element]);
      run.step(step);
    }
  });
  require(error.code == ErrorCode::diverged && error.name == weight, "{}: {} {}", where, name_of(error.code), error.name);
  require(found_in >= first_step && found_in < first_step + num_steps, "{}: found in step {}", where, found_in);
  require_contains(where, error.message, fmt::format("in step {} (from 0): element {} of {}", found_in, element, weight));
  if (layout.data > 2) {
    require(error.rank == culprit, "{}: found on rank {}", where, error.rank);
    require_contains(where, error.hint, fmt::format("most replicas contradict rank {};", culprit));
  } else {
    require_contains(where, error.message, fmt::format("on rank {}", culprit));
    require_contains(where, error.hint, "no majority");
  }
}

// Between steps, every second time; all ranks learn what one rank asks for.
void expect_bit_found_between_steps(const Group& world, const Layout& layout, int culprit) {
  const std::string where = fmt::format("{}, between steps, rank {}", layout.str(), culprit);
  GptRun run(world, layout, 2);
  const auto asked = run.replicas().exchange({.checkpoint = world.rank() == culprit});
  require(asked.checkpoint && !asked.stop, "{}: a request was lost", where);
  const auto none = run.replicas().exchange();
  require(!none.checkpoint && !none.stop, "{}: a request came from nowhere", where);
  const std::string weight = weight_of(layout, culprit);
  if (world.rank() == culprit) turn_bit(run.store().values<float>(run.store().find(weight)).data()[1]);
  run.replicas().exchange();
  const ErrorFields error = same_error(world, where, [&] { run.replicas().exchange(); });
  require(error.code == ErrorCode::diverged && error.name == weight, "{}: {} {}", where, name_of(error.code), error.name);
  require_contains(where, error.message, "element 1 of");
}

// The step is an error with its details, then is skipped; too many skipped steps are an error too.
void expect_skipped(const Group& world, const Layout& layout, Fault fault, int culprit) {
  const bool in_loss = fault == Fault::loss_is_nan;
  const std::string where = fmt::format("{}, {} on rank {}", layout.str(),
                                        in_loss                           ? "nan in the loss"
                                        : fault == Fault::gradient_is_inf ? "inf in a gradient"
                                                                          : "inf in backward",
                                        culprit);
  const optim::UpdateOptions skip{.clip_norm = 1, .non_finite = optim::NonFinitePolicy::skip, .max_skipped = 2};
  const Fault own = world.rank() == culprit ? fault : Fault::none;
  GptRun run(world, layout, 2);
  GptRun clean(world, layout, 2);
  const auto good_step = [&](std::int64_t number) {
    require(run.step(number, skip), "{}: a good step was skipped", where);
    clean.step(number, skip);
    require(run.digest_of_state() == clean.digest_of_state(), "{}: step {} leads to another state", where, number);
  };
  good_step(0);
  const std::uint64_t before = run.digest_of_state();
  const ErrorFields error = same_error(world, where, [&] { run.step(1, {.clip_norm = 1}, own); });
  require(error.code == ErrorCode::diverged, "{}: {}", where, name_of(error.code));
  const std::string parameter = layout.on_last_stage(culprit) ? "transformer.ln_f.bias" : "transformer.h.1.mlp.c_proj.bias";
  require(error.name == parameter, "{}: the first parameter is {}", where, error.name);
  require_contains(where, error.message, "step 1 (from 0) has");
  require_contains(where, error.message,
                   in_loss ? fmt::format("began in the loss of rank {},", culprit) : "in a backward pass");
  require(run.digest_of_state() == before, "{}: the step that was refused changed the state", where);
  require(!run.step(1, skip, own), "{}: the step was taken", where);
  good_step(1);  // after one that is none of the moments' business
  for (int time = 0; time < skip.max_skipped; ++time) {
    require(!run.step(2, skip, own), "{}: the step was taken", where);
  }
  const ErrorFields often = same_error(world, where, [&] { run.step(2, skip, own); });
  require_contains(where, often.message, "the last of 3 in a row");
  require(run.optimizer().skipped_steps() == 5, "{}: {} steps were skipped", where, run.optimizer().skipped_steps());
  good_step(2);
}

// Running statistics, which the forward pass of the step has changed, are restored.
void expect_buffers_restored(const Group& world, bool synchronized) {
  struct Net : nn::Module<Float32> {
    nn::BatchNorm1d<Float32> norm{*this, "norm", {.channels = 3}};
    nn::Linear<Float32> linear{*this, "linear", {.in = 3, .out = 2}};
  } model;
  model.initialize({.seed = 1});
  parallel::DataParallel replicas(model, ProcessMesh(world), {.synchronize_batch_norm = synchronized, .check_replicas = 1});
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 0.01});
  const auto buffers = [&] { return digest<float>("buffers", model.store().buffers().values<float>().span()); };
  for (std::int64_t number = 0; number < 4; ++number) {
    const std::uint64_t before = buffers();
    const bool bad = number == 1;
    Tensor<float> x({4, 3});
    for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<float>((i * i + number + world.rank()) % 5);
    parallel::Step step = replicas.begin(number);
    step.backward(0, [&] {
      auto loss = cross_entropy(model.linear.forward(model.norm.forward(Variable<float>(x))),
                                Tensor<std::int32_t>::from({4}, std::vector<std::int32_t>{0, 1, 1, 0}));
      if (bad && world.rank() == world.size() - 1) loss.sum = scale(loss.sum, std::numeric_limits<float>::quiet_NaN());
      return loss;
    });
    const bool stepped = step.update(optimizer, {.non_finite = optim::NonFinitePolicy::skip});
    require(stepped != bad && (buffers() == before) == bad, "batch norm {}: step {} was {}, the buffers {}",
            synchronized ? "synchronized" : "of each rank", number, stepped ? "taken" : "skipped",
            buffers() == before ? "kept" : "changed");
  }
}

}  // namespace

std::vector<SilentFault> turned_bits(int ranks, Culprits culprits) {
  std::vector<SilentFault> faults;
  for (const Layout& layout : layouts_of(ranks)) {
    if (layout.data == 1) continue;
    // The last rank of the first stage, where there is one culprit.
    const int last = (layout.data - 1) * layout.ranks_of_replica() + layout.tensor - 1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (culprits == Culprits::one && rank != last) continue;
      for (const int num_steps : {1, 3}) {
        faults.push_back({fmt::format("{}, {} steps, rank {}", layout.str(), num_steps, rank),
                          [=](const Group& world) { expect_bit_found(world, layout, num_steps, rank); }});
      }
      faults.push_back({fmt::format("{}, between steps, rank {}", layout.str(), rank),
                        [=](const Group& world) { expect_bit_found_between_steps(world, layout, rank); }});
    }
  }
  return faults;
}

std::vector<SilentFault> steps_that_are_not_finite(int ranks, Culprits culprits) {
  std::vector<SilentFault> faults;
  const auto add = [&](const Layout& layout, Fault fault, const char* what, int rank) {
    faults.push_back({fmt::format("{}, {} on rank {}", layout.str(), what, rank),
                      [=](const Group& world) { expect_skipped(world, layout, fault, rank); }});
  };
  for (const Layout& layout : layouts_of(ranks)) {
    const int last_of_first_stage = (layout.data - 1) * layout.ranks_of_replica() + layout.tensor - 1;
    for (int rank = 0; rank < ranks; ++rank) {
      const bool every = culprits == Culprits::every;
      if (every ? layout.on_last_stage(rank) : rank == ranks - 1) add(layout, Fault::loss_is_nan, "nan in the loss", rank);
      if (every || rank == last_of_first_stage) add(layout, Fault::backward_makes_inf, "inf in backward", rank);
      if (layout.data == 1 && (every ? layout.on_last_stage(rank) : rank == ranks - 1))
        add(layout, Fault::gradient_is_inf, "inf in a gradient", rank);
    }
  }
  for (const bool synchronized : {true, false}) {
    faults.push_back({fmt::format("{} ranks, running statistics, {}", ranks, synchronized ? "synchronized" : "of each rank"),
                      [=](const Group& world) { expect_buffers_restored(world, synchronized); }});
  }
  return faults;
}

}  // namespace trireme::tests
