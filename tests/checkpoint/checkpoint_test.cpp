#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"
#include "checkpoint/layouts.hpp"
#include "checkpoint/sample_runs.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using checkpoint::CheckpointOptions;
using checkpoint::Checkpoints;
using test::load_difference;
using test::options_on;
using test::SampleState;
using test::save_sample;
using test::SimulatedFileSystem;
using testing::run_ranks;

namespace {

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
      run_ranks(writers, [&](const Group& world) { save_sample(world, system, layout, 5); });
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
  run_ranks(2, [&](const Group& world) { save_sample(world, system, 0, 5); });
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
    CHECK(error_of([&] { checkpoints.save(6, nothing, {{"note", "caf\xe9"}}); }).fields().name == "note");
    std::string text = "caf\xe9";
    nothing.add("text", &text);
    CHECK(error_of([&] { checkpoints.save(6, nothing); }).code() == ErrorCode::invalid_argument);
    const Error step = error_of([&] { checkpoints.load(7, State()); });
    CHECK(std::string(step.what()).find("only of steps [5]") != std::string::npos);
  });
}

TEST_CASE("a path that can't be looked at is an Error") {
  CHECK(error_of([] { checkpoint::newest_folder(std::string(5000, 'x')); }).code() == ErrorCode::io);
}

TEST_CASE("a checkpoint keeps any double") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  using Limits = std::numeric_limits<double>;
  const std::vector<double> numbers{Limits::quiet_NaN(),
                                    -Limits::quiet_NaN(),
                                    Limits::infinity(),
                                    -Limits::infinity(),
                                    -0.0,
                                    Limits::denorm_min(),
                                    Limits::max(),
                                    3,
                                    0.1,
                                    1e22};
  const auto with = [](std::vector<double>& values, State& state) {
    for (std::size_t index = 0; index < values.size(); ++index) state.add(fmt::format("value.{}", index), &values[index]);
  };
  run_ranks(2, [&](const Group& world) {
    std::vector<double> saved = numbers;
    State state;
    with(saved, state);
    Checkpoints(world, options_on(system)).save(1, state);
  });
  run_ranks(1, [&](const Group& world) {
    std::vector<double> loaded(numbers.size(), 7);
    State state;
    with(loaded, state);
    Checkpoints(world, options_on(system)).load_newest(state);
    for (std::size_t index = 0; index < numbers.size(); ++index)
      CHECK(std::bit_cast<std::uint64_t>(loaded[index]) == std::bit_cast<std::uint64_t>(numbers[index]));
  });
  CHECK(error_of([&] {
          run_ranks(2, [&](const Group& world) {
            double value = world.rank() == 0 ? Limits::quiet_NaN() : 1;
            State state;
            state.add("value", &value);
            Checkpoints(world, options_on(system)).save(2, state);
          });
        })
            .fields()
            .name == "value");
}

TEST_CASE("an old checkpoint that can't be removed does not undo the new one") {
  struct Stubborn final : FileSystem {
    explicit Stubborn(std::shared_ptr<FileSystem> on) : under(std::move(on)) {}
    std::unique_ptr<OutputFile> create(const Location& path) override { return under->create(path); }
    std::unique_ptr<InputFile> open(const Location& path) const override { return under->open(path); }
    void create_folder(const Location& path) override { under->create_folder(path); }
    void rename(const Location& from, const Location& to) override { under->rename(from, to); }
    void sync_folder(const Location& path) override { under->sync_folder(path); }
    void remove_all(const Location& path) override {
      throw Error({.code = ErrorCode::io, .message = "no way", .path = path.string()});
    }
    FileKind kind_of(const Location& path) const override { return under->kind_of(path); }
    std::vector<FolderEntry> entries_of(const Location& folder) const override { return under->entries_of(folder); }
    std::shared_ptr<FileSystem> under;
  };
  std::string told;
  set_log_sink([&told](Severity, std::string_view line) { told += std::string(line) + "\n"; });
  for (const bool asynchronous : {false, true}) {
    const auto system = std::make_shared<SimulatedFileSystem>();
    CheckpointOptions options = options_on(system, asynchronous);
    options.file_system = std::make_shared<Stubborn>(system);
    options.keep = 2;
    setenv("TRIREME_JOB_ID", "job", 1);
    for (const std::int64_t first : {1, 5}) {  // the second start finds what the first could not remove
      run_ranks(2, [&](const Group& world) {
        SampleState sample(world.rank(), world.size(), 2);
        Checkpoints checkpoints(world, options);
        for (std::int64_t step = first; step < first + 4; ++step) {
          sample.fill(static_cast<std::uint64_t>(step));
          checkpoints.save(step, sample.state());
          checkpoints.finish();
        }
      });
    }
    unsetenv("TRIREME_JOB_ID");
    const auto steps = checkpoint::committed_steps("/run", *system);
    REQUIRE(!steps.empty());
    CHECK(steps.back() == 8);
  }
  set_log_sink({});
  CHECK_THAT(told, ContainsSubstring("an older checkpoint could not be removed: no way") &&
                       ContainsSubstring("unfinished checkpoints of an earlier start could not be removed: no way"));
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
    for (const std::int64_t step : {10, 20}) save_sample(world, system, 0, step);
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

TEST_CASE("where a run that went back has a checkpoint, none that it left is later, whenever the power is lost") {
  const auto prepared = [] {
    auto system = std::make_shared<SimulatedFileSystem>();
    run_ranks(2, [&](const Group& world) {
      for (const std::int64_t step : {10, 20, 30}) save_sample(world, system, 0, step);
    });
    return system;
  };
  const auto go_back = [](const std::shared_ptr<SimulatedFileSystem>& system) {
    run_ranks(2, [&](const Group& world) {
      SampleState sample(world.rank(), world.size(), 0);
      sample.fill(15);
      Checkpoints(world, options_on(system)).save(15, sample.state());
    });
  };
  const auto undisturbed = prepared();
  const std::int64_t first = undisturbed->calls();
  go_back(undisturbed);
  CHECK(undisturbed->exists("/run/left-step-000000020/manifest.json"));
  CHECK(undisturbed->exists("/run/left-step-000000030/manifest.json"));
  const std::int64_t last = undisturbed->calls();
  for (std::int64_t call = first + 1; call <= last + 1; ++call) {
    const auto system = prepared();
    system->lose_power_at(call);
    bool lost = false;
    try {
      go_back(system);
    } catch (const std::exception&) {
      lost = true;
    }
    CHECK(lost == (call <= last));
    for (const double keep : {0.0, 0.3, 0.5, 0.8, 1.0}) {
      INFO("power lost at call " << call << ", " << keep << " of the changes kept");
      const auto after = system->after_power_loss(keep, static_cast<std::uint64_t>(call));
      const std::vector<std::int64_t> steps = checkpoint::committed_steps("/run", *after);
      const bool saved = std::ranges::find(steps, 15) != steps.end();
      CHECK((saved ? steps.back() == 15 : lost));
    }
  }
}

TEST_CASE("a step that is saved again is there at any moment") {
  const auto save = [](const std::shared_ptr<SimulatedFileSystem>& system, std::uint64_t content) {
    run_ranks(2, [&](const Group& world) {
      SampleState sample(world.rank(), world.size(), 0);
      sample.fill(content);
      Checkpoints(world, options_on(system)).save(10, sample.state());
    });
  };
  const auto found_in = [](const std::shared_ptr<SimulatedFileSystem>& system) {
    std::string found;
    run_ranks(1, [&](const Group& world) {
      SampleState sample(0, 1, 0);
      sample.fill(99);
      if (!Checkpoints(world, options_on(system)).load_newest(sample.state())) return;
      found = sample.difference(10).empty() ? "old" : sample.difference(11).empty() ? "replaced" : "neither";
    });
    return found;
  };
  const auto undisturbed = std::make_shared<SimulatedFileSystem>();
  save(undisturbed, 10);
  const std::int64_t first = undisturbed->calls();
  save(undisturbed, 11);
  CHECK(found_in(undisturbed) == "replaced");
  CHECK(undisturbed->names_in("/run").size() == 1);
  for (std::int64_t call = first + 1; call <= undisturbed->calls(); ++call) {
    for (const double keep : {0.0, 0.5, 1.0}) {
      INFO("power lost at call " << call << ", " << keep << " of the changes kept");
      const auto system = std::make_shared<SimulatedFileSystem>();
      save(system, 10);
      system->lose_power_at(call);
      CHECK_THROWS(save(system, 11));
      const std::string found = found_in(system->after_power_loss(keep, static_cast<std::uint64_t>(call)));
      CHECK((found == "old" || found == "replaced"));
    }
  }
}

TEST_CASE("who opens a directory to read changes nothing, and removes nothing of a job that saves") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  run_ranks(2, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 0);
    sample.fill(5);
    Checkpoints evaluation(world, options_on(system));
    require(!evaluation.load_newest(sample.state()), "there is no checkpoint");
    world.barrier();
    require(system->calls() == 0, "opening makes {} changes", system->calls());
    world.barrier();

    Checkpoints training(world, options_on(system, true));
    training.save(5, sample.state());
    Checkpoints other(world, options_on(system));
    require(!other.load_newest(sample.state()), "the checkpoint is under way");
    sample.fill(6);
    other.save(6, sample.state());
    require(training.finish() == 5, "what others do leaves the save alone");
  });
}

TEST_CASE("a job removes what its own earlier starts left half done") {
  const auto system = std::make_shared<SimulatedFileSystem>();
  for (const char* name : {"/run", "/run/.tmp-job7-step-000000003", "/run/.tmp-job8-step-000000003"})
    system->create_folder(name);
  setenv("TRIREME_JOB_ID", "job7", 1);
  run_ranks(2, [&](const Group& world) { save_sample(world, system, 0, 5); });
  CHECK(system->names_in("/run") == std::vector<std::string>{".tmp-job8-step-000000003", "step-000000005"});
  setenv("TRIREME_JOB_ID", "../job", 1);
  CHECK_THROWS_WITH(run_ranks(2, [&](const Group& world) { save_sample(world, system, 0, 6); }),
                    ContainsSubstring("TRIREME_JOB_ID"));
  unsetenv("TRIREME_JOB_ID");
  CHECK(checkpoint::remove_unfinished("/run", *system) == std::vector<std::string>{".tmp-job8-step-000000003"});
  CHECK(system->names_in("/run") == std::vector<std::string>{"step-000000005"});
}
