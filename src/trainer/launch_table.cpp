#include <array>
#include <memory>
#include <string>

#include "trainer/command_line_impl.hpp"
#include "trainer/option_rows.hpp"
#include "trireme/core/error.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::trainer {

namespace {

struct Ranks {
  BackendKind& backend;
  LaunchOptions& options;
};

constexpr auto rank_rows = std::to_array<OptionRow<Ranks>>({
    {.name = "backend",
     .value = [](Ranks& r) -> OptionValue {
       BackendKind& kind = r.backend;
       return Words{.shown = [&kind] { return std::string(kind == BackendKind::thread ? "thread" : "mpi"); },
                    .take = [&kind](const std::string& given) { kind = parse_backend(given); },
                    .choices = {"mpi", "thread"}};
     },
     .text = "ranks are processes that mpirun started, or threads of this one"},
    {.name = "ranks", .value = [](Ranks& r) -> OptionValue { return &r.options.ranks; }, .text = "of --backend thread"},
    {.name = "threads",
     .value = [](Ranks& r) -> OptionValue { return &r.options.threads_per_rank; },
     .text = "OpenMP threads of a rank; 0: OMP_NUM_THREADS, or its share of the cores"},
    {.name = "flight-dir",
     .value = [](Ranks& r) -> OptionValue { return &r.options.flight_directory; },
     .text = "keep the ranks' last calls in this folder, for trireme-flight"},
});

constexpr auto device_rows = std::to_array<OptionRow<DeviceOptions>>({
    {.name = "device",
     .value = [](DeviceOptions& d) -> OptionValue {
       return Words{.shown = [&d] { return d.device; },
                    .take = [&d](const std::string& given) { d.device = given; },
                    .choices = {"cpu", "cuda"}};
     },
     .text = "cuda: each rank computes on an NVIDIA GPU"},
    {.name = "start-up",
     .value = [](DeviceOptions& d) -> OptionValue {
       return Words{.shown = [] { return std::string("automatic"); },
                    .take = [&d](const std::string& given) { d.start_up = parse_start_up(given); }};
     },
     .text = "with --device cuda: what started the processes: mpi, torchrun, slurm, single, or automatic"},
    {.name = "memory-fraction",
     .value = [](DeviceOptions& d) -> OptionValue { return &d.memory_fraction; },
     .text = "the share of its GPU's memory that a rank may use",
     .check =
         [](const DeviceOptions& d) {
           require(d.memory_fraction > 0 && d.memory_fraction <= 1, "--memory-fraction {} does not lie in (0, 1]",
                   d.memory_fraction);
         }},
    {.name = "allow-tf32",
     .value = [](DeviceOptions& d) -> OptionValue { return &d.allow_tf32; },
     .text = "with --device cuda: products of float32 round their operands to TF32"},
});

}  // namespace

void CommandLine::add_launch(BackendKind& backend, LaunchOptions& options) {
  const auto ranks = std::make_shared<Ranks>(Ranks{backend, options});
  impl_->add_rows<Ranks>("Ranks", rank_rows, *ranks);
  after_parsing([ranks] {
    const LaunchOptions& how = ranks->options;
    require(how.ranks > 0 && how.threads_per_rank >= 0, "--ranks is above 0 and --threads 0 or more, not {} and {}", how.ranks,
            how.threads_per_rank);
    require(how.ranks == 1 || ranks->backend == BackendKind::thread,
            "--ranks is for --backend thread; start more processes with mpirun -n {}", how.ranks);
  });
}

void CommandLine::add_device(DeviceOptions& options) {
  impl_->device = &options;
  impl_->add_rows<DeviceOptions>("Device", device_rows, options);
  after_parsing([this, &options] {
    require(!given("start-up") || options.device == "cuda", "--start-up is for processes with --device cuda");
    if (options.device == "cuda") device::require_cuda();
  });
}

}  // namespace trireme::trainer
