#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

#include "checkpoint/directory.hpp"
#include "checkpoint/part_reader.hpp"
#include "checkpoint/plan.hpp"
#include "checkpoint/saved_files.hpp"
#include "checkpoint/texts.hpp"
#include "checkpoint/threads.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

[[noreturn]] void refuse(const Location& folder, const std::string& name, std::string message, std::string wanted = {},
                         std::string had = {}) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = std::move(message),
               .operation = "loading a checkpoint",
               .name = name,
               .path = folder.string(),
               .wanted = std::move(wanted),
               .had = std::move(had),
               .hint = "give the run the model and the optimizer of the checkpoint, or another directory; for weights alone, "
                       "trireme-ckpt export FOLDER FILE writes a file for --init of a trainer, with --format plain for "
                       "nn::load_weights"});
}

std::string describe(DType dtype, const Shape& shape) { return fmt::format("{} {}", name_of(dtype), shape.str()); }

// A chunk to read.
struct Chunk {
  const PartReader* reader = nullptr;
  std::size_t index = 0;
  const SavedTensor* tensor = nullptr;
  std::span<const CopyRun> copies = {};

  auto place() const { return std::tuple(reader->part().file, reader->part().offset, index); }
};

// Loads a checkpoint into this rank's state.
class Loader {
 public:
  Loader(const Group& group, const CheckpointOptions& options, Location folder, const Manifest& manifest, const State& state,
         const Plan& plan)
      : group_(group), options_(options), folder_(std::move(folder)), manifest_(manifest), state_(state), plan_(plan) {
    for (const SavedTensor& tensor : manifest.tensors) saved_[tensor.name] = &tensor;
  }

  // Throws Error unless the checkpoint has all tensors and values of this rank, with the same shapes and types.
  void compare() const {
    for (const StateTensor& tensor : state_.tensors()) {
      if (tensor.optional || begins_anew(tensor.name)) continue;
      const auto found = saved_.find(tensor.name);
      if (found == saved_.end()) refuse(folder_, tensor.name, "the checkpoint lacks a tensor of this run");
      if (fits(*found->second, tensor)) continue;
      refuse(folder_, tensor.name, "a tensor of the checkpoint does not fit this run", describe(tensor.dtype, tensor.shape),
             describe(found->second->dtype, found->second->shape));
    }
    for (const State::NamedValue& value : state_.values()) {
      if (begins_anew(value.name)) continue;
      const auto found = manifest_.values.find(value.name);
      if (found == manifest_.values.end()) refuse(folder_, value.name, "the checkpoint lacks a value of this run");
      if (found->second.index() != value.place.index())
        refuse(folder_, value.name, "a value of the checkpoint has another type");
    }
  }

  // Throws Error for what only the checkpoint has, since it would be lost silently.
  void compare_rest() const {
    for (const SavedTensor& tensor : manifest_.tensors) {
      if (plan_of(tensor.name) == nullptr && !tensor.optional)
        refuse(folder_, tensor.name, "the checkpoint holds a tensor that this run lacks");
    }
    for (const auto& [name, value] : manifest_.values) {
      if (!plan_.values.contains(name)) refuse(folder_, name, "the checkpoint holds a value that this run lacks");
    }
  }

  // Checks all chunks that some rank loads; each chunk on one of the ranks.
  void check_files() {
    for (const SavedFile& file : manifest_.files) {
      paths_.push_back(folder_ / file.name);
      inputs_.push_back(open_saved(*options_.file_system, paths_.back(), file));
    }
    std::vector<PartReader> readers;
    for (const PlannedTensor& planned : plan_.tensors) {
      const SavedTensor* saved = source_of(planned);
      if (saved == nullptr) continue;
      for (const TensorPart& part : saved->parts) readers.push_back(reader_of(*saved, part));
    }
    std::vector<Chunk> chunks;
    std::uint64_t bytes = 0;
    for (const PartReader& reader : readers) {
      for (std::size_t index = 0; index < reader.num_chunks(); ++index) {
        chunks.push_back({.reader = &reader, .index = index});
        bytes += reader.size_of_chunk(index);
      }
    }
    std::ranges::stable_sort(chunks, {}, &Chunk::place);
    std::uint64_t before = 0;
    std::erase_if(chunks, [&](const Chunk& chunk) {
      const std::uint64_t rank = before * static_cast<std::uint64_t>(group_.size()) / bytes;
      before += chunk.reader->size_of_chunk(chunk.index);
      return rank != static_cast<std::uint64_t>(group_.rank());
    });
    std::vector<std::vector<std::byte>> buffers(static_cast<std::size_t>(options_.threads));
    run_on_threads(options_.threads, chunks.size(), [&](std::size_t index, std::size_t thread) {
      chunks[index].reader->check(chunks[index].index, buffers[thread]);
    });
  }

  // Fills the state. Returns the digests of this rank's parts of the plan, by tensor of the manifest.
  std::vector<std::uint64_t> fill() const {
    std::deque<PartReader> readers;
    std::deque<std::vector<CopyRun>> copies;
    std::vector<Chunk> chunks;
    for (const StateTensor& tensor : state_.tensors()) {
      const SavedTensor* saved = source_of(tensor);
      if (saved == nullptr) continue;
      const auto [planned, rest] = divide(tensor);
      for (const TensorPart& part : saved->parts) {
        std::vector<CopyRun> own = copies_of(part, tensor.dtype, planned);
        for (CopyRun& copy : own) copy.digested = true;
        std::ranges::copy(copies_of(part, tensor.dtype, rest), std::back_inserter(own));
        if (own.empty()) continue;
        std::ranges::sort(own, {}, &CopyRun::in_part);
        copies.push_back(std::move(own));
        readers.push_back(reader_of(*saved, part));
        readers.back().visit_chunks(copies.back(), [&](std::size_t index, std::span<const CopyRun> overlapping) {
          chunks.push_back({.reader = &readers.back(), .index = index, .tensor = saved, .copies = overlapping});
        });
      }
    }
    std::ranges::stable_sort(chunks, {}, &Chunk::place);
    std::vector<std::uint64_t> sums(manifest_.tensors.size(), 0);
    std::vector<std::vector<std::byte>> buffers(static_cast<std::size_t>(options_.threads));
    run_on_threads(options_.threads, chunks.size(), [&](std::size_t index, std::size_t thread) {
      const Chunk& chunk = chunks[index];
      const std::uint64_t sum = chunk.reader->copy(chunk.index, chunk.copies, buffers[thread]);
      std::atomic_ref(sums[static_cast<std::size_t>(chunk.tensor - manifest_.tensors.data())]) += sum;
    });
    for (const State::NamedValue& value : state_.values()) {
      if (begins_anew(value.name)) continue;
      const SavedValue& saved = manifest_.values.at(value.name);
      std::visit([&]<typename T>(T* place) { *place = std::get<T>(saved); }, value.place);
    }
    return sums;
  }

  void compare_digests(const std::vector<std::uint64_t>& sums) const {
    for (const PlannedTensor& planned : plan_.tensors) {
      const SavedTensor* saved = source_of(planned);
      if (saved == nullptr) continue;
      const SavedTensor& tensor = *saved;
      const auto index = static_cast<std::size_t>(saved - manifest_.tensors.data());
      if (sums[index] == tensor.digest) continue;
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = "the loaded tensor differs from the saved one: the digests differ",
                   .name = tensor.name,
                   .path = folder_.string(),
                   .wanted = fmt::format("{:016x}", tensor.digest),
                   .had = fmt::format("{:016x}", sums[index]),
                   .hint = "memory or disk may be failing; do not train on"});
    }
  }

 private:
  // Whether a name is not among imported weights, which are then all that the checkpoint has.
  bool begins_anew(const std::string& name) const {
    return manifest_.imported && !name.starts_with(manifest_.imported->prefix);
  }

  template <typename Tensor>
  static bool fits(const SavedTensor& saved, const Tensor& tensor) {
    return saved.dtype == tensor.dtype && saved.shape == tensor.shape;
  }

  // Null for an optional tensor that the checkpoint lacks or has in another shape.
  template <typename Tensor>
  const SavedTensor* source_of(const Tensor& tensor) const {
    const auto found = saved_.find(tensor.name);
    return found != saved_.end() && fits(*found->second, tensor) ? found->second : nullptr;
  }

  const PlannedTensor* plan_of(const std::string& name) const {
    const auto found = std::ranges::lower_bound(plan_.tensors, name, {}, &PlannedTensor::name);
    return found != plan_.tensors.end() && found->name == name ? &*found : nullptr;
  }

  PartReader reader_of(const SavedTensor& tensor, const TensorPart& part) const {
    const auto file = static_cast<std::size_t>(part.file);
    return PartReader(*inputs_[file], paths_[file], tensor, part, manifest_.chunk_bytes);
  }

  // This rank's pieces of a tensor: those that the plan assigns to it, which it digests, and the rest.
  std::pair<std::vector<StatePiece>, std::vector<StatePiece>> divide(const StateTensor& tensor) const {
    std::vector<Range> here;
    for (const StatePiece& piece : tensor.pieces) here.push_back(piece.elements);
    std::vector<Range> planned;
    for (const PlannedPart& part : plan_of(tensor.name)->parts) {
      if (part.rank == group_.rank()) std::ranges::copy(ranges_of(part.runs), std::back_inserter(planned));
    }
    std::ranges::sort(planned, {}, &Range::begin);
    return {pieces_of(planned, tensor), pieces_of(without(here, planned), tensor)};
  }

  const Group& group_;
  const CheckpointOptions& options_;
  Location folder_;
  const Manifest& manifest_;
  const State& state_;
  const Plan& plan_;
  std::map<std::string, const SavedTensor*> saved_;
  std::vector<Location> paths_;
  std::vector<std::unique_ptr<InputFile>> inputs_;
};

}  // namespace

LoadedCheckpoint Checkpoints::load(std::int64_t step, const State& state, const LoadOptions& options) {
  const FileSystem& files = *options_.file_system;
  std::string name;
  const auto find = [&] {
    if (group_.rank() != 0) return;
    const Location folder = checkpoint_folder(options_.directory, step, files);
    if (!files.exists(folder / manifest_name)) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("there is no checkpoint of step {}, only of steps [{}]", step,
                                          fmt::join(committed_steps(options_.directory, files), ", ")),
                   .path = options_.directory.string()});
    }
    name = folder.name();
  };
  group_.agree(find, "look for a checkpoint");
  // Rank 0 chooses, so that all ranks load the same checkpoint.
  return load_folder(broadcast_text(group_, name, "name of a checkpoint"), state, options);
}

LoadedCheckpoint Checkpoints::load_folder(const std::string& name, const State& state, const LoadOptions& options) {
  const Location folder = options_.directory / name;
  std::string text;
  const auto read = [&] {
    if (group_.rank() == 0) text = options_.file_system->open(folder / manifest_name)->content();
  };
  group_.agree(read, "read a checkpoint's manifest");
  const Manifest manifest = parse_manifest(broadcast_text(group_, text, "manifest of a checkpoint"), folder / manifest_name);
  const Plan plan = make_plan(group_, state);

  Loader loader(group_, options_, folder, manifest, state, plan);
  group_.agree([&] { loader.compare(); }, "compare a checkpoint with the run");
  if (options.whole) loader.compare_rest();
  group_.agree([&] { loader.check_files(); }, "check a checkpoint");
  std::vector<std::uint64_t> sums;
  group_.agree([&] { sums = loader.fill(); }, "load a checkpoint");
  group_.all_reduce(std::span(sums), ReduceOp::sum, "digests of a checkpoint").wait_on_host();
  loader.compare_digests(sums);
  state.loaded();
  return {.step = manifest.step, .configuration = manifest.configuration, .imported = manifest.imported};
}

std::optional<LoadedCheckpoint> Checkpoints::load_newest(const State& state) {
  std::vector<std::int64_t> newest{-1};
  const auto look = [&] {
    if (group_.rank() != 0) return;
    const auto committed = steps();
    if (!committed.empty()) newest[0] = committed.back();
  };
  group_.agree(look, "look for checkpoints");
  group_.broadcast(std::span(newest), 0, "newest checkpoint").wait_on_host();
  if (newest[0] < 0) return std::nullopt;
  return load(newest[0], state);
}

}  // namespace trireme::checkpoint
