// Steps that are given up, and taken whole afterwards.
#include <mutex>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "parallel/step_net.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/parallel/step/step.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;

namespace {

struct Thrown : std::runtime_error {
  Thrown() : std::runtime_error("thrown by a test") {}
};

// Where a step is given up.
enum class Place : std::uint8_t {
  nowhere,
  after_begin,
  after_first_micro_batch,
  after_last_micro_batch,
  after_finish,
  in_first_loss,
  in_last_loss,
  in_update,
};
constexpr Place places[] = {Place::after_begin,  Place::after_first_micro_batch, Place::after_last_micro_batch,
                            Place::after_finish, Place::in_first_loss,           Place::in_last_loss,
                            Place::in_update};

struct Setup {
  parallel::ParallelOptions options = {};
  int ranks = 2;
  int micro_batches = 2;
  Place given_up = Place::nowhere;  // step 1; it is then taken whole
  bool power_sgd = false;           // a hook of each rank
};

// Gets as far as `place`; true where it took the whole step.
template <typename P>
bool take_step(parallel::DataParallel& replicas, const Net<P>& net, optim::AnyOptimizer& optimizer, const Group& world,
               std::int64_t number, const Setup& setup, Place place) {
  parallel::Step step = replicas.begin(number, setup.micro_batches);
  if (place == Place::after_begin) return false;
  for (int micro = 0; micro < setup.micro_batches; ++micro) {
    const bool last = micro + 1 == setup.micro_batches;
    const Batch batch = batch_of(world, number, setup.micro_batches, micro);
    step.backward(batch, [&] {
      const auto loss = net.loss(batch);
      if (place == (last ? Place::in_last_loss : Place::in_first_loss)) throw Thrown();
      return loss;
    });
    if (place == (last ? Place::after_last_micro_batch : Place::after_first_micro_batch)) return false;
  }
  if (place == Place::after_finish) {
    expect(step.finish().step == number, "the summary of another step");
    return false;
  }
  if (place == Place::in_update) {
    step.update(optimizer, {.learning_rate = -1});
    return false;
  }
  step.update(optimizer, {.learning_rate = 0.1 / static_cast<double>(number + 1), .clip_norm = 1});
  return true;
}

template <typename P>
std::vector<float> train(const Setup& setup) {
  std::vector<float> result;
  std::mutex mutex;
  testing::run_ranks(setup.ranks, [&](const Group& world) {
    Net<P> net(!std::holds_alternative<parallel::FixedBits>(setup.options.sum));
    net.initialize({.seed = 5});
    const auto passes = [&net] { return net.passes.defined() ? net.passes.value().data()[0] : 0; };
    parallel::ParallelOptions options = setup.options;
    if (setup.power_sgd) std::get<parallel::Hooked>(options.sum).compression.hook = parallel::power_sgd_hook({.rank = 2});
    parallel::DataParallel replicas(net, ProcessMesh(world), options);
    optim::Sgd<P> optimizer(net, {.momentum = 0.9});
    for (std::int64_t number = 0; number < 4; ++number) {
      if (number == 1 && setup.given_up != Place::nowhere) {
        const double scale = replicas.scaler().scale();
        try {
          const bool whole = take_step(replicas, net, optimizer, world, number, setup, setup.given_up);
          expect(!whole, "the step was taken");
        } catch (const Thrown&) {
          expect(setup.given_up == Place::in_first_loss || setup.given_up == Place::in_last_loss, "the loss did not throw");
        } catch (const Error&) {
          expect(setup.given_up == Place::in_update, "another error than that of update()");
        }
        expect(replicas.scaler().scale() == scale, "another loss scale");
        for (int index = 0; index < net.store().num_parameters(); ++index)
          expect(!net.store().has_gradient(index), "a gradient is left");
        expect(passes() == (net.passes.defined() ? static_cast<float>(setup.micro_batches) : 0), "{} passes are counted",
               passes());
      }
      const bool whole = take_step(replicas, net, optimizer, world, number, setup, Place::nowhere);
      expect(whole, "step {} was not taken", number);
    }
    const std::lock_guard lock(mutex);
    const auto values = net.store().template values<float>().span();
    std::vector<float> mine(values.begin(), values.end());
    mine.push_back(passes());
    if (result.empty()) result = mine;
    expect(result == mine, "the ranks differ");
  });
  return result;
}

parallel::ParallelOptions with(parallel::GradientSum sum, parallel::Sharding sharding) {
  return {.sum = std::move(sum), .sharding = sharding, .buckets = {.bytes = 512, .first_bytes = 64, .slice_bytes = 256}};
}

}  // namespace

TEMPLATE_TEST_CASE("a step that is given up anywhere leaves nothing behind", "", Float32, MixedBfloat16, MixedFloat16) {
  using parallel::Sharding;
  for (const Sharding sharding : {Sharding::none, Sharding::optimizer}) {
    const std::vector<parallel::GradientSum> sums{
        parallel::Plain{}, parallel::FixedBits{.micro_batches = 4},
        parallel::Hooked{
            {.hook = parallel::float16_hook(), .only_if_faster = false, .between = parallel::CompressionBetween::ranks}}};
    for (const parallel::GradientSum& sum : sums) {
      Setup setup{.options = with(sum, sharding)};
      const std::vector<float> wanted = train<TestType>(setup);
      for (const Place place : places) {
        CAPTURE(sum.index(), sharding, place);
        setup.given_up = place;
        CHECK(train<TestType>(setup) == wanted);
      }
    }
  }
}

TEST_CASE("steps of a run that tunes its buckets can be given up") {
  for (const Place place : places) {
    Setup setup{.options = with(parallel::Plain{.tuning = {.on = true}}, parallel::Sharding::none)};
    setup.given_up = place;
    CHECK(train<Float32>(setup).size() > 1);
  }
}

// The progress of the exchanges when the step is given up depends on timing. The hook keeps its errors.
TEST_CASE("steps whose hook has several exchanges can be given up") {
  for (const parallel::Sharding sharding : {parallel::Sharding::none, parallel::Sharding::optimizer}) {
    for (const Place place : places) {
      CAPTURE(sharding, place);
      Setup setup{
          .options =
              with(parallel::Hooked{{.hook = nullptr, .only_if_faster = false, .between = parallel::CompressionBetween::ranks}},
                   sharding),
          .power_sgd = true};
      setup.given_up = place;
      CHECK(train<Float32>(setup).size() > 1);
    }
  }
}
