#include <fmt/format.h>

#include <array>
#include <exception>
#include <future>
#include <utility>

#include "checkpoint/directory.hpp"
#include "checkpoint/json.hpp"
#include "checkpoint/plan.hpp"
#include "checkpoint/shard.hpp"
#include "checkpoint/texts.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"

namespace trireme::checkpoint {
namespace {

template <typename T>
bool is_ready(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::string shard_name(int rank) { return fmt::format("shard-{:05}.safetensors", rank); }

Manifest manifest_of(const Plan& plan, std::int64_t step, std::int64_t chunk_bytes, const Configuration& configuration,
                     const std::vector<ShardReport>& reports) {
  Manifest manifest{.step = step, .chunk_bytes = chunk_bytes, .configuration = configuration, .values = plan.values};
  for (const PlannedTensor& tensor : plan.tensors) {
    manifest.tensors.push_back(
        {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .optional = tensor.optional});
  }
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const ShardReport& report = reports[rank];
    const auto places = plan.places_of(static_cast<int>(rank));
    std::uint64_t offset = report.header_bytes;
    for (std::size_t index = 0; index < places.size(); ++index) {
      SavedTensor& tensor = manifest.tensors[places[index].tensor];
      const auto& runs = plan.tensors[places[index].tensor].parts[places[index].part].runs;
      tensor.parts.push_back(
          {.file = static_cast<int>(rank), .offset = offset, .runs = runs, .checksums = report.checksums[index]});
      tensor.digest += report.digests[index];
      offset += static_cast<std::uint64_t>(numel_of(runs)) * size_of(tensor.dtype);
    }
    manifest.files.push_back(
        {.name = report.name, .bytes = offset, .header_bytes = report.header_bytes, .header_checksum = report.header_checksum});
  }
  return manifest;
}

}  // namespace

// A checkpoint that is being saved: all ranks write shards, then rank 0 commits.
struct Checkpoints::Saving {
  std::int64_t step = 0;
  Configuration configuration;
  std::optional<ImportedWeights> imported;
  Plan plan;
  Shard shard;
  Location folder;
  std::future<ShardReport> written;
  std::future<void> committed;  // on rank 0, after all ranks have written
  bool all_written = false;

  bool done_here() const { return all_written ? !committed.valid() || is_ready(committed) : is_ready(written); }
  void wait_here() const {
    if (!all_written) {
      written.wait();
    } else if (committed.valid()) {
      committed.wait();
    }
  }
};

std::shared_ptr<FileSystem> file_system_of(const CheckpointOptions& options) {
  return options.file_system != nullptr ? options.file_system : file_system_of(options.directory);
}

Checkpoints::Checkpoints(const Group& group, const CheckpointOptions& options) : group_(group), options_(options) {
  options_.file_system = file_system_of(options);
  require(!options.directory.empty(), "checkpoints need a directory");
  require(options.keep >= 2, "{} checkpoints are too few to keep: use 2 or more, so that one is left while the next is written",
          options.keep);
  require(options.chunk_bytes > 0 && options.chunk_bytes % 8 == 0, "chunk_bytes is {}, but must be a multiple of 8",
          options.chunk_bytes);
  require(options.threads > 0, "{} threads can't load anything; use 1 or more", options.threads);
}

// If it is destroyed during a save, for example by an exception, it can't wait for the other ranks.
Checkpoints::~Checkpoints() {
  if (saving_ == nullptr) return;
  try {
    if (saving_->committed.valid()) {
      saving_->committed.get();
      return;
    }
  } catch (const std::exception&) {  // the checkpoint is not committed
  }
  abandon();
}

void Checkpoints::prepare(const Configuration& configuration) {
  for (const auto& [name, value] : configuration) require_utf8(name, value);
  if (!job_.empty()) return;
  std::string job;
  const auto make = [&] {
    if (group_.rank() != 0) return;
    job = own_job();
    make_directory(*options_.file_system, options_.directory);
    try {
      remove_leftovers(*options_.file_system, options_.directory, job);
    } catch (const Error& error) {  // harmless, since new files have other names
      log(Severity::warning, "unfinished checkpoints of an earlier start could not be removed: {}", error.what());
    }
  };
  group_.agree(make, "make the directory of checkpoints");
  job_ = broadcast_text(group_, job, "id of the job that saves");
}

void Checkpoints::save(std::int64_t step, const State& state, const Configuration& configuration,
                       const std::optional<ImportedWeights>& imported) {
  require(step >= 0, "a checkpoint of step {}, but steps must be 0 or more", step);
  finish();
  prepare(configuration);
  auto saving = std::make_unique<Saving>();
  saving->step = step;
  saving->configuration = configuration;
  saving->imported = imported;
  saving->plan = make_plan(group_, state);
  saving->shard = shard_of(saving->plan, state, group_.rank());
  saving_ = std::move(saving);
  const auto begin = [&] {
    if (group_.rank() == 0) saving_->folder = make_folder(*options_.file_system, options_.directory, job_, step);
    if (options_.asynchronous) own(saving_->shard, copy_);
  };
  try {
    group_.agree(begin, "begin a checkpoint");
    saving_->folder = options_.directory / broadcast_text(group_, saving_->folder.name(), "folder of a checkpoint");
  } catch (...) {
    abandon();
    throw;
  }
  const auto write = [&files = *options_.file_system, &shard = saving_->shard, chunk_bytes = options_.chunk_bytes,
                      path = saving_->folder / shard_name(group_.rank())] {
    return write_shard(files, path, shard, chunk_bytes);
  };
  saving_->written = std::async(options_.asynchronous ? std::launch::async : std::launch::deferred, write);
  if (!options_.asynchronous) finish();
}

std::optional<std::int64_t> Checkpoints::poll() {
  if (!saving()) return std::nullopt;
  std::array<std::int32_t, 1> done{saving_->done_here() ? 1 : 0};
  group_.all_reduce(std::span(done), ReduceOp::min, "checkpoint").wait_on_host();
  if (done[0] == 0) return std::nullopt;
  const std::int64_t step = saving_->step;
  advance();
  return saving() ? std::nullopt : std::optional(step);
}

std::optional<std::int64_t> Checkpoints::finish() {
  if (!saving()) return std::nullopt;
  const std::int64_t step = saving_->step;
  while (saving()) {
    saving_->wait_here();
    advance();
  }
  return step;
}

// Goes on to the next stage of the save, after all ranks have finished the current one.
void Checkpoints::advance() {
  try {
    if (saving_->all_written) {
      group_.agree(
          [&] {
            if (saving_->committed.valid()) saving_->committed.get();
          },
          "commit a checkpoint");
      saving_.reset();
    } else {
      commit_when_written();
    }
  } catch (...) {
    abandon();
    throw;
  }
}

void Checkpoints::commit_when_written() {
  std::string report;
  group_.agree([&] { report = to_text(saving_->written.get()); }, "write a checkpoint");
  const auto reports = group_.gather_texts(report, "write a checkpoint");
  saving_->shard = {};
  saving_->all_written = true;
  if (group_.rank() != 0) return;
  const auto commit_it = [reports, &saving = *saving_, &options = options_, &job = job_] {
    std::vector<ShardReport> parsed;
    for (const std::string& text : reports) parsed.push_back(parse_report(text));
    Manifest manifest = manifest_of(saving.plan, saving.step, options.chunk_bytes, saving.configuration, parsed);
    manifest.imported = saving.imported;
    commit(*options.file_system, options.directory, saving.folder, saving.step, to_text(manifest));
    try {
      keep_newest(*options.file_system, options.directory, options.keep, job);
    } catch (const Error& error) {  // harmless, since the new checkpoint is committed
      log(Severity::warning, "an older checkpoint could not be removed: {}", error.what());
    }
  };
  saving_->committed = std::async(options_.asynchronous ? std::launch::async : std::launch::deferred, commit_it);
}

// Each rank removes only its own shard, since others may still write; rank 0 and the last rank also remove the folder. What
// this leaves has the job's id in its name, so a later start removes it.
void Checkpoints::abandon() {
  const auto saving = std::move(saving_);
  if (saving->folder.empty() || (saving->all_written && group_.rank() != 0)) return;
  FileSystem& files = *options_.file_system;
  try {
    if (saving->written.valid()) saving->written.wait();
    if (group_.rank() == 0) return remove_folder(files, saving->folder);
    files.remove_all(saving->folder / shard_name(group_.rank()));
    if (files.names_in(saving->folder).empty()) files.remove_all(saving->folder);
  } catch (const std::exception&) {
  }
}

}  // namespace trireme::checkpoint
