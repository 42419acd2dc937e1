// Checkpoints in an object store: who is killed at any request leaves the old one or the new one.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "checkpoint/layouts.hpp"
#include "files/s3_server.hpp"
#include "temporary_folder.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/claim.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/files/cached_file_system.hpp"
#include "trireme/files/remote/remote_file_systems.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;
using checkpoint::Checkpoints;
using test::Fault;
using test::S3Server;
using test::SampleState;
using test::ServedRequest;
using testing::run_ranks;

namespace {

const Location run = "s3://bucket/runs/first";

std::shared_ptr<FileSystem> files_of(const S3Server& server) {
  return s3_file_system(
      {.endpoint = server.address(),
       .region = "us-east-1",
       .access_key = S3Server::access_key,
       .secret_key = S3Server::secret_key,
       .remote = {.attempts = 2, .first_pause = std::chrono::milliseconds(0), .longest_pause = std::chrono::milliseconds(0)}});
}

checkpoint::CheckpointOptions options_on(const std::shared_ptr<FileSystem>& files, int keep = 2) {
  return {.directory = run, .keep = keep, .asynchronous = false, .file_system = files};
}

// The values are those of the step, unless `seed` is given.
void save(const std::shared_ptr<FileSystem>& files, std::int64_t step, int keep = 2, std::uint64_t seed = 0) {
  run_ranks(2, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 1);
    sample.fill(seed == 0 ? static_cast<std::uint64_t>(step) : seed);
    Checkpoints(world, options_on(files, keep)).save(step, sample.state());
  });
}
void save(const S3Server& server, std::int64_t step, int keep = 2) { save(files_of(server), step, keep); }

// The newest, whose values are those of its step, or of `seed`; -1: there is none, or it has others.
std::int64_t load_newest(const std::shared_ptr<FileSystem>& files, std::uint64_t seed = 0) {
  std::int64_t step = -1;
  run_ranks(1, [&](const Group& world) {
    SampleState sample(world.rank(), world.size(), 2);
    sample.fill(99);
    const auto loaded = Checkpoints(world, options_on(files)).load_newest(sample.state());
    if (loaded && sample.difference(seed == 0 ? static_cast<std::uint64_t>(loaded->step) : seed).empty()) step = loaded->step;
  });
  return step;
}
std::int64_t load_newest(const S3Server& server) { return load_newest(files_of(server)); }

}  // namespace

TEST_CASE("checkpoints are saved to S3, claimed, loaded, put aside and pruned") {
  S3Server server;
  const auto files = files_of(server);
  run_ranks(2, [&](const Group& world) {
    const checkpoint::Claim claim(world, run, files);
    SampleState sample(world.rank(), world.size(), 1);
    Checkpoints checkpoints(world, options_on(files));
    for (std::int64_t step = 1; step <= 3; ++step) {
      sample.fill(static_cast<std::uint64_t>(step));
      checkpoints.save(step, sample.state());
    }
  });
  CHECK(files->names_in(run) == std::vector<std::string>{"step-000000002", "step-000000003"});
  CHECK(files->names_in(run / "step-000000003") ==
        std::vector<std::string>{"manifest.json", "shard-00000.safetensors", "shard-00001.safetensors"});
  CHECK(server.uploads() == 0);
  CHECK(load_newest(server) == 3);
  CHECK(checkpoint::CheckpointReader(run / "step-000000002", files).problems().empty());

  save(server, 2, 3);  // of a run that went back
  CHECK(checkpoint::committed_steps(run, *files) == std::vector<std::int64_t>{2});
  CHECK(checkpoint::checkpoint_folder(run, 2, *files) == run / "step-000000002-2");
  CHECK(load_newest(server) == 2);
  CHECK(files->kind_of(run / "step-000000003" / "left-manifest.json") == FileKind::file);
  CHECK(checkpoint::prune(run, 1, *files) == std::vector<std::string>{"step-000000003"});
  CHECK(checkpoint::remove_unfinished(run, *files).empty());
  CHECK(files->names_in(run) == std::vector<std::string>{"step-000000002-2"});
}

TEST_CASE("a job that is killed at any request to S3 leaves the old checkpoint or the new one") {
  set_log_sink([](Severity, std::string_view) {});
  int kills = 0, old_left = 0, new_left = 0;
  for (bool is_whole = false; !is_whole; ++kills) {
    S3Server server;
    for (const std::int64_t step : {1, 2}) save(server, step);
    const std::int64_t first = server.http().requests();
    // Half of those who die have sent a last request.
    server.http().set_script([&](const ServedRequest& request) {
      const std::int64_t left = first + kills - request.number;
      return left > 0 ? Fault::none : left == 0 && kills % 2 == 0 ? Fault::lost : Fault::gone;
    });
    try {
      save(server, 3);
      is_whole = server.http().faults() == 0;
    } catch (const Error&) {  // it was killed
    }
    server.http().set_script({});
    const std::int64_t newest = load_newest(server);
    REQUIRE((newest == 2 || newest == 3));
    (newest == 2 ? old_left : new_left) += 1;
    const auto files = files_of(server);
    checkpoint::remove_unfinished(run, *files);
    CHECK(server.uploads() == 0);
    save(server, 4);  // a next job goes on, and nothing of the killed one stays
    REQUIRE(load_newest(server) == 4);
    REQUIRE(files->names_in(run).size() == 2);
  }
  set_log_sink({});
  CHECK(kills > 20);
  CHECK(old_left > 5);
  CHECK(new_left > 5);
}

TEST_CASE("checkpoints on S3 are saved and loaded through a cache of files") {
  S3Server server;
  const tests::TemporaryFolder folder;
  const auto cached = [&](std::uint64_t most_bytes = 0) {
    return cached_file_system(files_of(server), {.folder = folder.path(), .most_bytes = most_bytes});
  };
  const auto files = cached();
  for (const std::int64_t step : {1, 2, 3}) save(files, step);
  CHECK(files->names_in(run) == std::vector<std::string>{"step-000000002", "step-000000003"});
  CHECK(load_newest(files) == 3);
  CHECK(load_newest(cached()) == 3);
  CHECK(checkpoint::CheckpointReader(run / "step-000000003", files).problems().empty());

  // Another job replaces it by one of the same name and size.
  const auto before = server.objects();
  files_of(server)->remove_all(run / "step-000000003");
  save(files_of(server), 3, 2, 77);
  CHECK(server.objects().size() == before.size());
  CHECK(load_newest(files, 77) == 3);
  CHECK(load_newest(cached(1000), 77) == 3);  // no shard has room in it
  save(files, 4);
  CHECK(load_newest(server) == 4);

  // Jobs that are killed leave the old checkpoint or the new one to those who share the cache.
  set_log_sink([](Severity, std::string_view) {});
  std::int64_t newest = 4;
  for (const std::int64_t left : {1, 4, 7, 10, 14, 18}) {
    const std::int64_t first = server.http().requests();
    server.http().set_script(
        [&](const ServedRequest& request) { return request.number < first + left ? Fault::none : Fault::gone; });
    CHECK_THROWS_AS(save(files, newest + 1), Error);
    server.http().set_script({});
    const std::int64_t found = load_newest(files);
    REQUIRE((found == newest || found == newest + 1));
    REQUIRE(load_newest(server) == found);
    newest = found;
  }
  set_log_sink({});
  save(files, newest + 1);
  CHECK(load_newest(cached()) == newest + 1);
}
