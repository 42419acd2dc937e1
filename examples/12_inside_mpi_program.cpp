// Training inside a program that uses MPI, arguments, signals and standard output itself. It makes a Run by hand, which leaves
// them alone: its lines go to the program's log, its metrics to a sink. Run it alone or by mpirun -n 2.
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <trireme/trireme.hpp>
using namespace trireme;

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return output.forward(tanh(hidden.forward(rows.x))); }
  Linear hidden{*this, "hidden", {.in = 1, .out = 16}}, output{*this, "output", {.in = 16, .out = 1}};
};

struct LastLoss : monitor::Sink {
  explicit LastLoss(double& place) : loss(place) {}
  void write(const monitor::Snapshot& snapshot) override { loss = snapshot.find("loss")->value; }
  double& loss;
};

data::Table measured() {  // the result of the simulation: a wave
  data::TableContent content{.feature_names = {"time"}};
  for (int point = 0; point < 256; ++point) {
    const float time = static_cast<float>(point) / 64 - 2;
    content.features.push_back(time);
    content.targets.push_back(std::sin(2 * time));
  }
  return data::Table(std::move(content));
}

int main(int argc, char** argv) {
  int threads = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);  // the lowest level that trireme accepts
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  set_log_sink([rank](Severity, std::string_view line) {
    std::printf("[rank %d of the simulation] %.*s\n", rank, static_cast<int>(line.size()), line.data());
  });

  double loss = 0;
  const int failed = launch(BackendKind::mpi, {}, [&](const Group& world) {  // MPI is initialised: trireme does not finalize it
    trainer::Run run(world, {.until = Epochs{40}});
    run.add_sink(std::make_unique<LastLoss>(loss));
    Net net(run.context());
    optim::AdamW optimizer(net, {.learning_rate = 0.02});
    run.add(net, optimizer);
    const data::Loader rows(measured(), run.batch());
    for (auto& step : run.steps(rows)) {
      for (const auto& batch : step.batches())
        step.backward(batch, [&] { return mse_loss(net.forward(batch), batch.targets); });
      step.update(optimizer);
    }
    return 0;
  });

  MPI_Bcast(&loss, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);  // the simulation goes on
  if (rank == 0) std::printf("the surrogate is ready, loss %s\n", loss < 0.01 ? "below 0.01" : "too large");
  MPI_Finalize();
  return failed;
}
