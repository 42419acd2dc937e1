// The loop of 02 by hand, to see or change each part of it; the weights get the same bits. It needs only parallel::Step and
// Checkpoints: no command line, signals or metrics. Run it in the repository's folder, alone or by mpirun -n 4.
#include <cstdio>
#include <trireme/trireme.hpp>
using namespace trireme;

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return output.forward(relu(hidden.forward(rows.x))); }

  Linear hidden{*this, "hidden", {.in = 4, .out = 64}};
  Linear output{*this, "output", {.in = 64, .out = 4}};
};

int train(const Group& world, const std::string& directory) {
  const ProcessMesh mesh(world);
  const auto [training, test] =
      data::read_csv("examples/flowers.csv", {.label = "class"}).split({.test = 0.2, .standardize = true});
  const data::BatchOptions share{.batch_size = 32, .index = world.rank(), .count = world.size()};
  const data::Loader rows(training, share);
  Net net(parallel::model_context(mesh));
  net.initialize();
  optim::AdamW optimizer(net);
  parallel::DataParallel replicas(net, mesh);
  checkpoint::Checkpoints checkpoints(world, {.directory = directory});
  State state;
  replicas.add_to(state);
  optimizer.add_to(state);
  const auto newest = checkpoints.load_newest(state);
  const std::int64_t total = data::steps_of_samples(rows, 20 * rows.samples_per_epoch());
  const auto rate = optim::warmup_cosine({.base = 0.01, .total = total});
  double loss = 0;
  std::int64_t done = newest ? newest->step : 0;
  while (done < total) {
    parallel::Step step = replicas.begin(done);
    const data::Rows batch = rows.load(done);
    step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });
    step.update(optimizer, {.learning_rate = rate(done), .clip_norm = 1});
    loss = step.finish().loss();
    if (++done % 50 == 0 || done == total) checkpoints.save(done, state);
    checkpoints.poll();
  }
  checkpoints.finish();

  net.eval();
  Mean right;
  for (const data::Rows& batch : data::evaluation_batches(test, share)) right += accuracy(net.forward(batch), batch.labels);
  all_reduce(world, right);
  if (world.rank() == 0) std::printf("step %d: loss %.4f  test_accuracy %.4f\n", static_cast<int>(done), loss, right.value());
  return 0;
}

int main(int argc, char** argv) {
  return launch(BackendKind::mpi, {}, [&](const Group& world) { return train(world, argc > 1 ? argv[1] : "by_hand"); });
}
