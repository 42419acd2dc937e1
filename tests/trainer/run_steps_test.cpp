// Steps of a run: when the last one is due, the random numbers of repeated ones, and the data of an evaluation.

#include <vector>

#include "catch.hpp"
#include "comm/expect.hpp"
#include "trainer/small_run.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using namespace trireme::test;
using testing::run_ranks;
using trainer::Run;

TEST_CASE("the last step of a run that lasts a time is due for everything") {
  for (const int ranks : {1, 2}) {
    run_ranks(ranks, [&](const Group& world) {
      Run run(world, {.until = Seconds{0.2}, .batch_size = 12});
      PointNet net(run.context());
      optim::AdamW<Float32> optimizer(net);
      run.add(net, optimizer);
      const PointLoader loader(run.batch());
      std::int64_t last_due = -1;
      for (auto& step : run.steps(loader)) {
        for (const auto& batch : step.batches()) step.backward(batch, [&] { return net.loss(net.forward(batch), batch); });
        step.update(optimizer);
        if (run.due(Steps{1'000'000'000})) last_due = run.done();
      }
      expect(run.done() > 1 && last_due == run.done(), "only the last step is due");
    });
  }
}

TEST_CASE("several steps of one number draw different random numbers, and one that is done over the same") {
  run_ranks(2, [](const Group& world) {
    PointNet net;
    net.initialize();
    parallel::DataParallel replicas(net, ProcessMesh(world));
    optim::AdamW<Float32> optimizer(net);
    const PointBatch batch = points({0, 1, 2, 3}, 4 * world.rank());
    std::vector<float> drawn;
    const auto loss = [&] {
      const auto mask = net.drop.forward(Variable<float>(Tensor<float>::full({4, 24}, 1)));
      drawn.assign(mask.value().data(), mask.value().data() + mask.value().numel());
      return net.loss(net.forward(batch), batch);
    };
    const auto numbers_of = [&](std::int64_t number, bool update) {
      parallel::Step step = replicas.begin(number);
      step.backward(batch, loss);
      if (update) step.update(optimizer);
      return drawn;
    };
    const auto first = numbers_of(3, true);
    const auto given_up = numbers_of(3, false);
    const auto second = numbers_of(3, true);
    expect(second != first, "the second step of the number");
    expect(second == given_up, "what was given up is done over");
    expect(numbers_of(3, true) != second, "the third");
    numbers_of(4, true);
    expect(numbers_of(3, true) == first, "the first of the number again");
  });
}

TEST_CASE("an evaluation reads the data where they are") {
  struct Pinned : TestPoints {
    Pinned() = default;
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
  };
  run_ranks(1, [](const Group& world) {
    Run run(world, {.batch_size = 12});
    PointNet net(run.context());
    run.add(net);
    const Pinned pinned;
    expect(run.evaluate(net, pinned).value() == run.evaluate(net, TestPoints()).value(), "the same loss");
  });
}
