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

// Settings of the run that made a checkpoint, for those who load it.
using Configuration = std::map<std::string, std::string>;

struct CheckpointOptions {
  Location directory;                  // on a file system that all ranks share
  int keep = 3;                        // so many of the newest stay; 2 or more
  bool asynchronous = true;            // a thread of each rank writes while training goes on, from a copy of the state
  std::int64_t chunk_bytes = 1 << 20;  // that have a checksum of their own; a multiple of 8
  int threads = 2;                     // of each rank that load: one computes while another waits for the disk
  std::shared_ptr<FileSystem> file_system = nullptr;  // null: that of the directory
};

// What these options name, or that of the directory.
std::shared_ptr<FileSystem> file_system_of(const CheckpointOptions& options);

// Steps of the committed checkpoints in a directory, ascending: of the folders "step-000000123" that have a manifest. What is
// not done yet, or was left half done by a killed job, has other names and does not count.
std::vector<std::int64_t> committed_steps(const Location& directory, const FileSystem& file_system);
std::vector<std::int64_t> committed_steps(const Location& directory);

// The folder of a committed checkpoint: "step-000000123", with "-2" and so on behind where a step was saved again. Its manifest
// is manifest.json there.
Location checkpoint_folder(const Location& directory, std::int64_t step, const FileSystem& file_system);
Location checkpoint_folder(const Location& directory, std::int64_t step);

// Of a folder of a checkpoint that folder, of a directory of checkpoints the newest one's. Error where it is neither.
Location newest_folder(const Location& run);

// Both are for directories that no job uses, and give the names of what they have removed: all but the newest checkpoints, with
// those that a run has put aside; what killed jobs left half done.
std::vector<std::string> prune(const Location& directory, int keep, FileSystem& file_system);
std::vector<std::string> prune(const Location& directory, int keep);
std::vector<std::string> remove_unfinished(const Location& directory, FileSystem& file_system);
std::vector<std::string> remove_unfinished(const Location& directory);

struct LoadedCheckpoint {
  std::int64_t step = 0;
  Configuration configuration;
  std::optional<ImportedWeights> imported = {};  // then the state has kept all but these weights as it was
};

struct LoadOptions {
  // Whether what the checkpoint holds and the state lacks is an error. Otherwise it is passed over: for who wants the model of
  // a checkpoint without its optimizer.
  bool whole = true;
};

// Checkpoints of a job in one directory. Every rank writes a part of the state into a safetensors file, then rank 0 the
// manifest, which a renamed folder commits: a job that dies at any moment leaves either the whole checkpoint or none. Any
// number of ranks with any layout loads what any other has written: tensors are known by name and place in the whole. All calls
// but steps() are collective, and what fails on one rank is thrown on all.
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
  // Changes nothing in the directory, which may be missing.
  Checkpoints(const Group& group, const CheckpointOptions& options);
  ~Checkpoints();  // waits for the files of this rank; what is not committed by then is lost, and its files are removed
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Makes the directory and removes what this job's earlier starts left half done, so that a directory that can't be written is
  // known before training begins. The first save() does so too.
  void prepare(const Configuration& configuration = {});

  // Saves the state that training has after `step` steps. Synchronous: returns when it is committed. Asynchronous: returns when
  // the state is copied; one that is still being saved is finished first. The copy's memory is kept for the next one. After an
  // Error the checkpoints before are as they were, and the next save() starts anew. `imported`: where the state is weights of a
  // file alone.
  void save(std::int64_t step, const State& state, const Configuration& configuration = {},
            const std::optional<ImportedWeights>& imported = {});

  // Once a step: the step of a checkpoint that has just been committed, or nothing. Throws what went wrong while it was
  // written.
  std::optional<std::int64_t> poll();
  std::optional<std::int64_t> finish();  // waits for it
  bool saving() const { return saving_ != nullptr; }

  // Fills the state. Everything is checked before any of it changes, every chunk by one of the ranks: Error{invalid_argument}
  // names a tensor or value that only one of the two has, or that differs in shape or type; Error{corrupt_file} the file that
  // is damaged. Files are read twice, so that each of `threads` needs no more than 256 KiB of memory; where they fit into the
  // page cache, the disk is read once.
  LoadedCheckpoint load(std::int64_t step, const State& state, const LoadOptions& options = {});
  // The same of a checkpoint by the name of its folder in the directory, whatever step and history it is of.
  LoadedCheckpoint load_folder(const std::string& name, const State& state, const LoadOptions& options = {});
  std::optional<LoadedCheckpoint> load_newest(const State& state);  // nothing when there is no checkpoint

  std::vector<std::int64_t> steps() const { return committed_steps(options_.directory, *options_.file_system); }

 private:
  struct Saving;

  void advance();
  void commit_when_written();
  void abandon();

  Group group_;
  CheckpointOptions options_;
  std::string job_;              // empty: nothing was saved yet
  std::vector<std::byte> copy_;  // what an asynchronous save writes
  std::unique_ptr<Saving> saving_;
};

}  // namespace checkpoint
}  // namespace trireme
