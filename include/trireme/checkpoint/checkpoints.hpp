#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/state.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {
namespace checkpoint {

// Settings of the run that saved a checkpoint, for programs that load the checkpoint.
using Configuration = std::map<std::string, std::string>;

struct CheckpointOptions {
  Location directory;                  // on a file system that all ranks share
  int keep = 3;                        // how many of the newest checkpoints to keep; at least 2
  bool asynchronous = true;            // a thread on each rank writes a copy of the state while training continues
  std::int64_t chunk_bytes = 1 << 20;  // bytes per checksum; a multiple of 8
  int threads = 2;                     // per rank, for loading: one thread computes while another waits for the disk
  std::shared_ptr<FileSystem> file_system = nullptr;  // null: file_system_of(directory)
};

// The file system in the options, or else the file system of the directory's scheme.
std::shared_ptr<FileSystem> file_system_of(const CheckpointOptions& options);

// Steps of the committed checkpoints in a directory, ascending. A committed checkpoint is a folder "step-000000123" with a
// manifest. Unfinished checkpoints, including those of killed jobs, have other names and do not count.
std::vector<std::int64_t> committed_steps(const Location& directory, const FileSystem& file_system);
std::vector<std::int64_t> committed_steps(const Location& directory);

// The folder of a committed checkpoint: "step-000000123", or with "-2" and so on appended if the step was saved again. The
// folder contains manifest.json.
Location checkpoint_folder(const Location& directory, std::int64_t step, const FileSystem& file_system);
Location checkpoint_folder(const Location& directory, std::int64_t step);

// Returns `run` if it is the folder of a checkpoint, or the newest checkpoint's folder if it is a directory of checkpoints.
// Throws Error if it is neither.
Location newest_folder(const Location& run);

// Call the next two functions only for directories that no job uses. prune() keeps only the newest `keep` checkpoints; it also
// removes checkpoints that a run has put aside. remove_unfinished() removes unfinished checkpoints and other files that killed
// jobs left. Both return the names of the folders and files that they removed.
std::vector<std::string> prune(const Location& directory, int keep, FileSystem& file_system);
std::vector<std::string> prune(const Location& directory, int keep);
std::vector<std::string> remove_unfinished(const Location& directory, FileSystem& file_system);
std::vector<std::string> remove_unfinished(const Location& directory);

struct LoadedCheckpoint {
  std::int64_t step = 0;
  Configuration configuration;
  std::optional<ImportedWeights> imported = {};  // set if the checkpoint has only these weights; other state is unchanged
};

struct LoadOptions {
  // true: throws Error for tensors and values of the checkpoint that the state lacks. false: skips them, for example to load a
  // model without its optimizer.
  bool whole = true;
};

// Saves and loads the checkpoints of a job in one directory. Every rank writes a part of the state to a safetensors file; then
// rank 0 writes the manifest and commits the checkpoint by renaming its folder. A job that dies at any moment leaves either the
// whole checkpoint or none. Any number of ranks with any layout can load a checkpoint, because tensors are identified by name,
// and elements by their place in the whole tensor. All calls except steps() are collective; an error on one rank is thrown on
// all ranks.
//
//   Checkpoints checkpoints(world, {.directory = "run1"});
//   if (const auto loaded = checkpoints.load_newest(state)) step = loaded->step;
//   ...
//   checkpoints.save(step, state);  // between steps
//   ...
//   checkpoints.poll();             // after each step
//   ...
//   checkpoints.finish();
class Checkpoints {
 public:
  // Does not change the directory, which may be missing.
  Checkpoints(const Group& group, const CheckpointOptions& options);
  ~Checkpoints();  // waits for this rank's files; drops a checkpoint that is not committed and removes its files
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Creates the directory and removes unfinished checkpoints of earlier starts of this job. Call prepare() before training to
  // find out early that the directory can't be written. The first save() does the same.
  void prepare(const Configuration& configuration = {});

  // Saves the state after `step` steps. A synchronous save returns when the checkpoint is committed. An asynchronous save first
  // finishes the previous save, and returns when the state is copied. The memory of the copy is kept for the next save. After
  // an Error the earlier checkpoints are unchanged, and save() can be called again. Set `imported` if the state holds only
  // weights from a file.
  void save(std::int64_t step, const State& state, const Configuration& configuration = {},
            const std::optional<ImportedWeights>& imported = {});

  // Call it once per step. Returns the step of a checkpoint that has just been committed. Throws errors of an asynchronous
  // save.
  std::optional<std::int64_t> poll();
  std::optional<std::int64_t> finish();  // waits for the checkpoint being saved
  bool saving() const { return saving_ != nullptr; }

  // Fills the state. Checks the whole checkpoint before it changes the state; each chunk is checked by one of the ranks. Throws
  // Error{invalid_argument} with the name of a tensor or value if only the checkpoint or only the state has it, or if its shape
  // or type differs. Throws Error{corrupt_file} with the path of a damaged file. Files are read twice, so that each of the
  // `threads` threads needs at most 256 KiB of memory. If the files fit into the page cache, the disk is read once.
  LoadedCheckpoint load(std::int64_t step, const State& state, const LoadOptions& options = {});
  // The same for a checkpoint given by the name of its folder in the directory. The checkpoint may have been put aside.
  LoadedCheckpoint load_folder(const std::string& name, const State& state, const LoadOptions& options = {});
  std::optional<LoadedCheckpoint> load_newest(const State& state);  // std::nullopt without a checkpoint

  std::vector<std::int64_t> steps() const { return committed_steps(options_.directory, *options_.file_system); }

 private:
  struct Saving;

  void advance();
  void commit_when_written();
  void abandon();

  Group group_;
  CheckpointOptions options_;
  std::string job_;              // empty before the first save
  std::vector<std::byte> copy_;  // the bytes that an asynchronous save writes
  std::unique_ptr<Saving> saving_;
};

}  // namespace checkpoint
}  // namespace trireme
