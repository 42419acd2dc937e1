#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>

#include "catch.hpp"
#include "checkpoint/layouts.hpp"
#include "checkpoint/simulated_file_system.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/error.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using checkpoint::CheckpointOptions;
using checkpoint::Checkpoints;
using test::SampleState;
using test::SimulatedFileSystem;
using testing::run_ranks;

namespace {

CheckpointOptions options_on(std::shared_ptr<SimulatedFileSystem> system, bool asynchronous = false) {
  return {.directory = "/run", .keep = 2, .asynchronous = asynchronous, .chunk_bytes = 256, .file_system = std::move(system)};
}

void save(const Group& world, const std::shared_ptr<SimulatedFileSystem>& system, int layout, std::int64_t step) {
  SampleState sample(world.rank(), world.size(), layout);
  sample.fill(static_cast<std::uint64_t>(step));
  Checkpoints checkpoints(world, options_on(system));
  checkpoints.save(step, sample.state(), {{"seed", "1"}});
}

// The state that is in the newest checkpoint is that of `step`.
std::string load_difference(const Group& world, const std::shared_ptr<SimulatedFileSystem>& system, int layout,
                            std::int64_t step) {
  SampleState sample(world.rank(), world.size(), layout);
  sample.fill(99);
  Checkpoints checkpoints(world, options_on(system));
  const auto loaded = checkpoints.load_newest(sample.state());
  if (!loaded || loaded->step != step) return "another step";
  return sample.difference(static_cast<std::uint64_t>(step));
}

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw std::logic_error("not reached");
}

}  // namespace

TEST_CASE("runs of elements are kept in few numbers") {
  using checkpoint::Runs;
  std::vector<Range> columns;
  for (std::int64_t row = 0; row < 1000; ++row) columns.push_back({row * 8 + 2, row * 8 + 5});
  const auto runs = checkpoint::runs_of(columns);
  CHECK(runs == std::vector<Runs>{{.first = 2, .count = 3, .stride = 8, .times = 1000}});
  CHECK(checkpoint::numel_of(runs) == 3000);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Range> ranges;
    std::int64_t at = 0;
    while (ranges.size() < 20) {
      at += random() % 3;
      const std::int64_t end = at + 1 + random() % 3;
      ranges.push_back({at, end});
      at = end;
    }
    const auto again = checkpoint::ranges_of(checkpoint::runs_of(ranges));
    std::vector<bool> wanted(static_cast<std::size_t>(at));
    std::vector<bool> had(wanted.size());
    for (const auto& [begin, end] : ranges) std::fill(wanted.begin() + begin, wanted.begin() + end, true);
    for (const auto& [begin, end] : again) std::fill(had.begin() + begin, had.begin() + end, true);
    REQUIRE(wanted == had);
  }
}

TEST_CASE("any layout loads what any other has saved") {
  for (const int writers : {1, 2, 3, 4}) {
    for (int layout = 0; layout < 7; ++layout) {
      const auto system = std::make_shared<SimulatedFileSystem>();
      run_ranks(writers, [&](const Group& world) { save(world, system, layout, 5); });
      for (const int readers : {1, 2, 3, 4}) {
        run_ranks(readers, [&](const Group& world) {
          for (int other = 0; other < 7; ++other) {
            const std::string difference = load_difference(world, system, other, 5);
            require(difference.empty(), "{} ranks of layout {} saved, {} of layout {} loaded: {}", writers, layout, readers,
                    other, difference);
          }
        });
      }
    }
  }
}

TEST_CASE("a checkpoint is saved while the state changes") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  run_ranks(3, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 1);
    Checkpoints checkpoints(world, options_on(system, true));
    for (std::int64_t step = 1; step <= 5; ++step) {
      sample.fill(static_cast<std::uint64_t>(step));
      checkpoints.save(step, sample.state());
      sample.fill(77);
      std::optional<std::int64_t> committed;
      while (!committed) committed = checkpoints.poll();
      require(committed == step && !checkpoints.saving(), "step {} is committed", step);
    }
    sample.fill(6);
    checkpoints.save(6, sample.state());
    require(checkpoints.finish() == 6, "finish waits");
    world.barrier();
    require(checkpoints.steps() == std::vector<std::int64_t>{5, 6}, "the newest two are kept");
  });
  run_ranks(2, [&](const Group& world) { require(load_difference(world, system, 3, 6).empty(), "the last one is whole"); });
}

TEST_CASE("the power may go at any call of a save") {
  const auto run = [](const std::shared_ptr<SimulatedFileSystem>& system, std::int64_t& committed) {
    run_ranks(2, [&](const Group& world) {
      SampleState sample(world.rank(), world.size(), 2);
      Checkpoints checkpoints(world, options_on(system));
      for (const std::int64_t step : {1, 2, 3, 4}) {
        sample.fill(static_cast<std::uint64_t>(step));
        checkpoints.save(step, sample.state());
        if (world.rank() == 0) committed = step;
      }
    });
  };
  std::int64_t committed = 0;
  const auto undisturbed = std::make_shared<SimulatedFileSystem>();
  run(undisturbed, committed);
  REQUIRE(committed == 4);
  REQUIRE(undisturbed->calls() > 100);
  int survivors = 0;
  for (std::int64_t call = 1; call <= undisturbed->calls(); ++call) {
    const auto system = std::make_shared<SimulatedFileSystem>();
    system->lose_power_at(call);
    committed = 0;
    CHECK_THROWS(run(system, committed));
    for (const double keep : {0.0, 0.3, 0.5, 0.8, 1.0}) {
      const auto found = system->after_power_loss(keep, static_cast<std::uint64_t>(call));
      INFO("power lost at call " << call << ", " << keep << " of the changes kept");
      const auto steps = checkpoint::committed_steps("/run", *found);
      const std::int64_t newest = steps.empty() ? 0 : steps.back();
      CHECK(newest >= committed);
      CHECK(newest <= committed + 1);
      if (newest == 0) continue;
      ++survivors;
      run_ranks(1, [&](const Group& world) {
        const std::string difference = load_difference(world, found, 0, newest);
        require(difference.empty(), "step {}: {}", newest, difference);
        save(world, found, 0, newest + 1);
        require(load_difference(world, found, 0, newest + 1).empty(), "training goes on");
      });
    }
  }
  CHECK(survivors > 300);
}

TEST_CASE("a call that fails is the same error on all ranks, and training goes on") {
  const auto run = [](const std::shared_ptr<SimulatedFileSystem>& system, bool asynchronous) {
    std::vector<std::string> errors(3);
    run_ranks(3, [&](const Group& world) {
      SampleState sample(world.rank(), world.size(), 3);
      Checkpoints checkpoints(world, options_on(system, asynchronous));
      for (const std::int64_t step : {1, 2, 3}) {
        sample.fill(static_cast<std::uint64_t>(step));
        try {
          checkpoints.save(step, sample.state());
          checkpoints.finish();
        } catch (const Error& error) {
          errors[static_cast<std::size_t>(world.rank())] += error.what();
        }
        world.barrier();
      }
    });
    CHECK(errors[0] == errors[1]);
    CHECK(errors[0] == errors[2]);
    return errors[0];
  };
  for (const bool asynchronous : {false, true}) {
    const auto undisturbed = std::make_shared<SimulatedFileSystem>();
    CHECK(run(undisturbed, asynchronous).empty());
    for (std::int64_t call = 5; call <= undisturbed->calls(); ++call) {  // the first ones make the directory
      const auto system = std::make_shared<SimulatedFileSystem>();
      system->fail_at(call, ENOSPC);
      INFO("call " << call << " fails: " << system->failed_call());
      const std::string text = run(system, asynchronous);
      CHECK(text.find("No space left on device") != std::string::npos);
      CHECK(text.find(system->failed_call()) != std::string::npos);
      const auto steps = checkpoint::committed_steps("/run", *system);
      REQUIRE(steps.size() >= 2);
      run_ranks(2, [&](const Group& world) {
        require(load_difference(world, system, 1, steps.back()).empty(), "step {}", steps.back());
      });
    }
  }
}

TEST_CASE("damage is found before anything changes") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  run_ranks(2, [&](const Group& world) { save(world, system, 1, 5); });
  std::mt19937 random(3);
  int damages = 0;
  const auto expect_found = [&](const std::string& what) {
    ++damages;
    INFO(what);
    run_ranks(2, [&](const Group& world) {
      SampleState sample(world.rank(), world.size(), 4);
      sample.fill(99);
      Checkpoints checkpoints(world, options_on(system));
      bool refused = false;
      try {
        checkpoints.load_newest(sample.state());
      } catch (const Error& error) {
        refused = error.code() == ErrorCode::corrupt_file || error.code() == ErrorCode::io;
      }
      require(refused, "{} was not noticed", what);
      require(sample.difference(99).empty(), "{}: {} has changed", what, sample.difference(99));
    });
  };
  for (const auto& path : system->files()) {
    auto& content = system->content(path);
    const auto before = content;
    for (int round = 0; round < 40; ++round) {
      const std::size_t at = random() % (content.size() - (path.extension() == ".json" ? 1 : 0));  // not the last line's end
      content[at] ^= static_cast<std::byte>(1 << (random() % 8));
      expect_found(fmt::format("a flipped bit of byte {} of {}", at, path.string()));
      content = before;
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, before.size() / 2, before.size() - 2}) {
      content.resize(size);
      expect_found(fmt::format("{} cut off at {}", path.string(), size));
      content = before;
    }
    content.push_back(std::byte{'x'});
    expect_found(fmt::format("a byte more in {}", path.string()));
    content = before;
  }
  const auto files = system->files();
  REQUIRE(files.size() == 3);
  std::swap(system->content(files[1]), system->content(files[2]));
  expect_found("swapped shards");
  std::swap(system->content(files[1]), system->content(files[2]));
  system->remove_all(files[1]);
  expect_found("a missing shard");
  CHECK(damages > 130);
}

TEST_CASE("each chunk is checked once, in little memory, and what is copied is checked again") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  const CheckpointOptions options{.directory = "/run", .asynchronous = false, .file_system = system};
  constexpr std::int64_t rows = 1000;
  const auto value_of = [](std::int64_t element) { return static_cast<float>(element % 9973); };
  // A whole tensor and, of another one, every third column.
  struct Model {
    std::vector<float> whole = std::vector<float>(700 * rows, -1.0f);
    std::vector<float> columns = std::vector<float>(100 * rows, -1.0f);
    State state = {};
  };
  const auto describe = [&](Model& model, int rank) {
    model.state.add("whole", Shape{700, rows}, model.whole.data());
    StateTensor columns{.name = "columns", .shape = {rows, 300}};
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t first = row * 300 + rank * 100;
      columns.pieces.push_back({.data = model.columns.data() + row * 100, .elements = {first, first + 100}});
    }
    model.state.add(columns);
  };
  run_ranks(3, [&](const Group& world) {
    Model model;
    describe(model, world.rank());
    for (const StateTensor& tensor : model.state.tensors()) {
      for (const StatePiece& piece : tensor.pieces) {
        for (std::int64_t element = piece.elements.begin; element < piece.elements.end; ++element)
          static_cast<float*>(piece.data)[element - piece.elements.begin] = value_of(element);
      }
    }
    Checkpoints(world, options).save(1, model.state);
  });

  std::atomic<std::int64_t> bytes_read{0};
  std::atomic<std::int64_t> largest{0};
  std::atomic<std::int64_t> damaged_at{-1};  // the read in which this byte of all that are read is changed
  system->observe_reads([&](std::span<std::byte> bytes) {
    const auto count = static_cast<std::int64_t>(bytes.size());
    const std::int64_t before = bytes_read.fetch_add(count);
    if (before <= damaged_at && damaged_at < before + count) bytes[bytes.size() / 2] ^= std::byte{4};
    for (std::int64_t most = largest; most < count && !largest.compare_exchange_weak(most, count);) continue;
  });
  std::atomic<int> unlike{0};
  std::atomic<int> unchanged{0};
  const auto load = [&](int threads) {
    bytes_read = 0;
    unlike = 0;
    unchanged = 0;
    run_ranks(3, [&](const Group& world) {
      CheckpointOptions with_threads = options;
      with_threads.threads = threads;
      Model model;
      describe(model, world.rank());
      Checkpoints checkpoints(world, with_threads);
      try {
        checkpoints.load_newest(model.state);
      } catch (const Error& error) {
        require(error.code() == ErrorCode::corrupt_file, "{}", error.what());
        ++unlike;
      }
      const auto is_new = [](float value) { return value == -1.0f; };
      if (std::ranges::all_of(model.whole, is_new) && std::ranges::all_of(model.columns, is_new)) ++unchanged;
      for (const StateTensor& tensor : model.state.tensors()) {
        for (const StatePiece& piece : tensor.pieces) {
          for (std::int64_t element = piece.elements.begin; element < piece.elements.end; ++element) {
            const float had = static_cast<const float*>(piece.data)[element - piece.elements.begin];
            require(unlike != 0 || had == value_of(element), "{}, element {}: {}", tensor.name, element, had);
          }
        }
      }
    });
  };
  const std::int64_t whole_bytes = 700 * rows * 4;
  const std::int64_t column_bytes = 300 * rows * 4;
  for (const int threads : {1, 3}) {
    load(threads);
    CHECK(unlike == 0);
    CHECK(largest <= 256 << 10);
    // One check by all together, and copies: of the whole on each rank, of the columns' rows wherever some are wanted.
    CHECK(bytes_read >= (whole_bytes + column_bytes) + 3 * whole_bytes + column_bytes);
    CHECK(bytes_read < (whole_bytes + column_bytes) + 3 * (whole_bytes + column_bytes) + 20'000);
  }
  const std::int64_t all_read = bytes_read;
  const std::int64_t checked = whole_bytes + column_bytes;
  for (int round = 0; round < 12; ++round) {
    damaged_at = 20'000 + round * (checked - 20'000) / 12;
    load(2);
    CHECK(unlike == 3);
    CHECK(unchanged == 3);
  }
  for (int round = 0; round < 24; ++round) {
    damaged_at = checked + 20'000 + round * (all_read - checked - 20'000) / 24;
    load(2);
    CHECK(unlike == 3);
    CHECK(unchanged == 0);
  }
}

TEST_CASE("what does not fit is named") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  run_ranks(2, [&](const Group& world) { save(world, system, 0, 5); });
  const auto refusal = [&](const std::function<void(State&)>& add, bool leave_out_optional = true) {
    return error_of([&] {
      run_ranks(2, [&](const Group& world) {
        SampleState sample(world.rank(), world.size(), 0, !leave_out_optional);
        sample.fill(99);
        add(sample.state());
        Checkpoints checkpoints(world, options_on(system));
        const auto loaded = checkpoints.load_newest(sample.state());
        if (loaded) throw Error({.message = "loaded " + sample.difference(5)});
      });
    });
  };
  float number = 0;
  double value = 0;
  const Error more = refusal([&](State& state) { state.add("more", Shape{1}, &number); });
  CHECK(more.code() == ErrorCode::invalid_argument);
  CHECK(more.fields().name == "more");
  CHECK(refusal([&](State& state) { state.add("momentum", &value); }).fields().name == "momentum");

  const auto with_optional = std::make_shared<SimulatedFileSystem>();
  run_ranks(1, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 0, true);
    sample.fill(5);
    Checkpoints checkpoints(world, options_on(with_optional));
    checkpoints.save(5, sample.state());
  });
  run_ranks(2, [&](const Group& world) {
    require(load_difference(world, with_optional, 0, 5).empty(), "an optional one is passed over");
  });
  CHECK(std::string(refusal([](State&) {}, false).what()).find("loaded error, element 0") != std::string::npos);

  run_ranks(1, [&](const Group& world) {
    State state;
    state.add("embedding", Shape{1}, &number);
    Checkpoints checkpoints(world, options_on(system));
    const Error error = error_of([&] { checkpoints.load_newest(state); });
    CHECK(error.fields().wanted == "float32 [1]");
    CHECK(error.fields().had == "float32 [37, 16]");
    State nothing;
    const Error lost = error_of([&] { checkpoints.load_newest(nothing); });
    CHECK(lost.fields().name == "block.bias");
    const Error step = error_of([&] { checkpoints.load(7, nothing); });
    CHECK(std::string(step.what()).find("there are those of steps [5]") != std::string::npos);
  });
}

TEST_CASE("ranks that hold a state differently are told") {
  const auto refusal = [&](const std::function<void(State&, int)>& add) {
    return error_of([&] {
      run_ranks(2, [&](const Group& world) {
        State state;
        add(state, world.rank());
        Checkpoints checkpoints(world, options_on(std::make_shared<SimulatedFileSystem>()));
        checkpoints.save(1, state);
      });
    });
  };
  float values[8] = {};
  std::int64_t numbers[2] = {3, 4};
  const Error gap = refusal([&](State& state, int rank) {
    state.add({.name = "w", .shape = {8}, .pieces = {{.data = values, .elements = {rank * 5, rank * 5 + 3}}}});
  });
  CHECK(gap.code() == ErrorCode::rank_mismatch);
  CHECK(std::string(gap.what()).find("no rank holds element 3 of [8]") != std::string::npos);
  const Error shape = refusal([&](State& state, int rank) { state.add("w", Shape{4 + rank}, values); });
  CHECK(std::string(shape.what()).find("rank 0 holds it as float32 [4], rank 1 as float32 [5]") != std::string::npos);
  const Error value = refusal([&](State& state, int rank) { state.add("step", &numbers[rank]); });
  CHECK(std::string(value.what()).find("it is 3 on rank 0 and 4 on rank 1") != std::string::npos);
}

TEST_CASE("a run that goes back puts later checkpoints aside") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  run_ranks(2, [&](const Group& world) {
    for (const std::int64_t step : {10, 20}) save(world, system, 0, step);
    SampleState sample(world.rank(), world.size(), 0);
    Checkpoints checkpoints(world, options_on(system));
    require(checkpoints.load(10, sample.state()).configuration.at("seed") == "1", "the configuration is kept");
    checkpoints.save(15, sample.state());
    require(checkpoints.steps() == std::vector<std::int64_t>{10, 15}, "step 20 is of a run that was left");
    sample.fill(16);
    checkpoints.save(15, sample.state());
    checkpoints.load(15, sample.state());
    require(sample.difference(16).empty(), "a step is replaced");
  });
  CHECK(system->exists("/run/left-step-000000020/manifest.json"));
}
