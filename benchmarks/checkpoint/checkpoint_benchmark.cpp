// Saves and loads a state and plain files of the same size on the same disk, in turn. Every second round the plain file
// comes last. Both are read cold: they are dropped from the page cache before.
//   mpirun -n 2 checkpoint_benchmark --directory /data/bench [--megabytes 500] [--sharded] [--rounds 5] [--json FILE]

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "measurement/command_line.hpp"
#include "measurement/measurement.hpp"
#include "trireme/files/file.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string directory;
  std::int64_t megabytes = 500;
  int rounds = 5;
  bool sharded = false;
  std::string json;
};

constexpr std::size_t block = std::size_t{1} << 20;
constexpr std::int64_t tensor_elements = std::int64_t{1} << 21;  // 8 MiB

// The disk alone: each rank reads or writes its share of the bytes, in blocks of 1 MiB, one after the other.
void write_plain(const fs::path& path, std::int64_t bytes) {
  fs::remove(path);
  const std::vector<std::byte> content(block, std::byte{42});
  File file = File::create(path);
  file.reserve(static_cast<std::uint64_t>(bytes));
  for (std::int64_t done = 0; done < bytes; done += static_cast<std::int64_t>(block)) file.write(content);
  file.sync();
  file.close();
}

void read_plain(const fs::path& path, std::int64_t bytes) {
  std::vector<std::byte> content(block);
  const File file = File::open(path);
  for (std::int64_t done = 0; done < bytes; done += static_cast<std::int64_t>(block)) {
    file.read_at(content, static_cast<std::uint64_t>(done));
  }
}

void empty_cache(const fs::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  require(descriptor >= 0, "{} can't be opened", path.string());
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor);
}

struct Figures {
  std::vector<double> write, save, copy, read, load;
  double first_copy = 0;
};

Figures measure(const Options& options, const Group& world) {
  const std::int64_t num_tensors = std::max<std::int64_t>(1, options.megabytes * 1'000'000 / (4 * tensor_elements));
  std::vector<std::vector<float>> tensors;
  State state;
  for (std::int64_t index = 0; index < num_tensors; ++index) {
    tensors.emplace_back(static_cast<std::size_t>(tensor_elements), static_cast<float>(index));
    const Range here = options.sharded ? Range{tensor_elements * world.rank() / world.size(),
                                               tensor_elements * (world.rank() + 1) / world.size()}
                                       : Range{0, tensor_elements};
    state.add({.name = fmt::format("tensor.{}", index),
               .shape = {tensor_elements},
               .pieces = {{.data = tensors.back().data() + here.begin, .elements = here}}});
  }
  const std::int64_t share =
      num_tensors * tensor_elements * 4 / world.size() / static_cast<std::int64_t>(block) * static_cast<std::int64_t>(block);
  const fs::path directory = fs::path(options.directory) / "checkpoint_benchmark";
  const fs::path plain = directory / fmt::format("plain.{}", world.rank());
  const auto make_folder = [&] {
    if (world.rank() == 0) fs::create_directories(directory);
  };
  world.agree(make_folder, "make the benchmark's folder");
  checkpoint::Checkpoints checkpoints(world, {.directory = directory, .keep = 2, .asynchronous = false});
  checkpoint::Checkpoints in_background(world, {.directory = directory, .keep = 2});
  Figures figures;
  for (std::int64_t round = 0; round <= options.rounds; ++round) {
    double write = 0;
    double save = 0;
    for (const bool plain_file : {round % 2 == 0, round % 2 != 0}) {  // the second one finds the disk busy with its cache
      if (plain_file) {
        write = slowest_seconds(world, [&] { write_plain(plain, share); });
      } else {
        save = slowest_seconds(world, [&] { checkpoints.save(2 * round, state); });
      }
    }
    empty_cache(plain);
    for (const auto& file : fs::directory_iterator(checkpoint::checkpoint_folder(directory, 2 * round)))
      empty_cache(file.path());
    double read = 0;
    double load = 0;
    for (const bool plain_file : {round % 2 == 0, round % 2 != 0}) {
      if (plain_file) {
        read = slowest_seconds(world, [&] { read_plain(plain, share); });
      } else {
        load = slowest_seconds(world, [&] { checkpoints.load(2 * round, state); });
      }
    }
    const double copy = slowest_seconds(world, [&] { in_background.save(2 * round + 1, state); });
    in_background.finish();
    if (round == 0) figures.first_copy = copy;
    if (round == 0) continue;  // warm-up: pages of memory and disk are new
    figures.write.push_back(write);
    figures.save.push_back(save);
    figures.copy.push_back(copy);
    figures.read.push_back(read);
    figures.load.push_back(load);
  }
  world.barrier();
  if (world.rank() == 0) fs::remove_all(directory);
  return figures;
}

int benchmark(const Options& options, const Group& world) {
  const Figures figures = measure(options, world);
  if (world.rank() != 0) return 0;
  const auto megabytes_per_second = [&](const std::vector<double>& seconds) {
    return static_cast<double>(options.megabytes) / median(seconds);
  };
  const auto ratio = [](const std::vector<double>& floor, const std::vector<double>& own) {
    std::vector<double> ratios;
    for (std::size_t index = 0; index < own.size(); ++index) ratios.push_back(floor[index] / own[index]);
    return median(ratios);
  };
  const double of_write = ratio(figures.write, figures.save);
  const double of_read = ratio(figures.read, figures.load);
  fmt::print("{} MB, {} ranks, {}\n", options.megabytes, world.size(), options.sharded ? "sharded" : "replicated");
  fmt::print("write and sync a plain file {:8.0f} MB/s\n", megabytes_per_second(figures.write));
  fmt::print("save                        {:8.0f} MB/s, {:.2f} of it (median of pairs)\n", megabytes_per_second(figures.save),
             of_write);
  fmt::print("asynchronous: training waits {:7.1f} ms, the first time {:.1f}\n", 1e3 * median(figures.copy),
             1e3 * figures.first_copy);
  fmt::print("read a plain file           {:8.0f} MB/s\n", megabytes_per_second(figures.read));
  fmt::print("load                        {:8.0f} MB/s, {:.2f} of it\n", megabytes_per_second(figures.load), of_read);
  write_json(options.json, {{"megabytes", options.megabytes},
                            {"ranks", world.size()},
                            {"sharded", options.sharded},
                            {"write_seconds", median(figures.write)},
                            {"save_seconds", median(figures.save)},
                            {"save_of_write", of_write},
                            {"copy_seconds", median(figures.copy)},
                            {"first_copy_seconds", figures.first_copy},
                            {"read_seconds", median(figures.read)},
                            {"load_seconds", median(figures.load)},
                            {"load_of_read", of_read},
                            {"rounds",
                             {{"write", figures.write},
                              {"save", figures.save},
                              {"copy", figures.copy},
                              {"read", figures.read},
                              {"load", figures.load}}}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command("Saves and loads a state beside plain files of the same size.");
  command.option("--directory", options.directory, "on the disk to measure");
  command.require("--directory");
  command.option("--megabytes", options.megabytes, "of state");
  command.option("--rounds", options.rounds, "of each, in turn");
  command.flag("--sharded", options.sharded, "each rank holds its part of every tensor; otherwise each holds all");
  command.option("--json", options.json, "write the figures here");
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch(BackendKind::mpi, {}, [&](const Group& world) { return benchmark(options, world); });
}
