#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/directory.hpp"
#include "checkpoint/part_reader.hpp"
#include "checkpoint/plan.hpp"
#include "checkpoint/saved_files.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/core/digest.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& folder, const std::string& name, std::string message, std::string wanted = {},
                         std::string had = {}) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = std::move(message),
               .operation = "loading a checkpoint",
               .name = name,
               .path = folder.string(),
               .wanted = std::move(wanted),
               .had = std::move(had),
               .hint = "give the run the model and the optimizer of the checkpoint, or another directory"});
}

std::string describe(DType dtype, const Shape& shape) { return fmt::format("{} {}", name_of(dtype), shape.str()); }

// What of a checkpoint goes where on this rank.
class Loader {
 public:
  Loader(FileSystem& files, fs::path folder, const Manifest& manifest, const State& state)
      : files_(files), folder_(std::move(folder)), manifest_(manifest), state_(state) {
    for (const SavedTensor& tensor : manifest.tensors) saved_[tensor.name] = &tensor;
    for (const StateTensor& tensor : state.tensors()) wanted_[tensor.name] = &tensor;
  }

  // Whether what this rank wants is there, and fits.
  void compare() const {
    for (const StateTensor& tensor : state_.tensors()) {
      if (tensor.optional) continue;
      const auto found = saved_.find(tensor.name);
      if (found == saved_.end()) refuse(folder_, tensor.name, "the checkpoint lacks a tensor of this run");
      if (fits(*found->second, tensor)) continue;
      refuse(folder_, tensor.name, "a tensor of the checkpoint does not fit this run", describe(tensor.dtype, tensor.shape),
             describe(found->second->dtype, found->second->shape));
    }
    for (const State::NamedValue& value : state_.values()) {
      const auto found = manifest_.values.find(value.name);
      if (found == manifest_.values.end()) refuse(folder_, value.name, "the checkpoint lacks a value of this run");
      if (found->second.index() != value.place.index())
        refuse(folder_, value.name, "a value of the checkpoint has another type");
    }
  }

  // What only the checkpoint has: an error, since it would be dropped without a word.
  void compare_rest(const Plan& plan) const {
    for (const SavedTensor& tensor : manifest_.tensors) {
      const bool wanted = std::ranges::binary_search(plan.tensors, tensor.name, {}, &PlannedTensor::name);
      if (!wanted && !tensor.optional) refuse(folder_, tensor.name, "the checkpoint holds a tensor that this run lacks");
    }
    for (const auto& [name, value] : manifest_.values) {
      if (!plan.values.contains(name)) refuse(folder_, name, "the checkpoint holds a value that this run lacks");
    }
  }

  void check_files() {
    for (const SavedFile& file : manifest_.files) {
      paths_.push_back(folder_ / file.name);
      inputs_.push_back(open_saved(files_, paths_.back(), file));
    }
    visit([](PartReader& reader, const std::vector<CopyRun>& copies) { reader.check(copies); });
  }

  void fill() const {
    visit([](PartReader& reader, const std::vector<CopyRun>& copies) { reader.copy(copies); });
    for (const State::NamedValue& value : state_.values()) {
      const SavedValue& saved = manifest_.values.at(value.name);
      std::visit([&]<typename T>(T* place) { *place = std::get<T>(saved); }, value.place);
    }
  }

  // Of this rank's parts of the plan, by tensor of the manifest.
  std::vector<std::uint64_t> digests(const Plan& plan, int rank) const {
    std::vector<std::uint64_t> sums(manifest_.tensors.size(), 0);
    for (const Plan::Place& place : plan.places_of(rank)) {
      const PlannedTensor& planned = plan.tensors[place.tensor];
      const std::string& name = planned.name;
      const StateTensor* tensor = wanted_.at(name);
      const SavedTensor* saved = source_of(*tensor);
      if (saved == nullptr) continue;
      std::uint64_t& sum = sums[static_cast<std::size_t>(saved - manifest_.tensors.data())];
      for (const StatePiece& piece : pieces_of(planned.parts[place.part], *tensor)) {
        sum += digest(name, tensor->dtype, piece.data, piece.elements.count(), piece.elements.begin);
      }
    }
    return sums;
  }

  void compare_digests(const std::vector<std::uint64_t>& sums, const Plan& plan) const {
    for (const PlannedTensor& planned : plan.tensors) {
      const auto found = saved_.find(planned.name);
      if (found == saved_.end() || !fits(*found->second, planned)) continue;
      const SavedTensor& tensor = *found->second;
      const auto index = static_cast<std::size_t>(found->second - manifest_.tensors.data());
      if (sums[index] == tensor.digest) continue;
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = "what was loaded is not what was saved: the digests differ",
                   .name = tensor.name,
                   .path = folder_.string(),
                   .wanted = fmt::format("{:016x}", tensor.digest),
                   .had = fmt::format("{:016x}", sums[index]),
                   .hint = "memory or disk may be failing; do not train on"});
    }
  }

 private:
  template <typename Tensor>
  static bool fits(const SavedTensor& saved, const Tensor& tensor) {
    return saved.dtype == tensor.dtype && saved.shape == tensor.shape;
  }

  // Null for an optional one that the checkpoint lacks, or has in another shape.
  const SavedTensor* source_of(const StateTensor& tensor) const {
    const auto found = saved_.find(tensor.name);
    return found != saved_.end() && fits(*found->second, tensor) ? found->second : nullptr;
  }

  void visit(const std::function<void(PartReader& reader, const std::vector<CopyRun>& copies)>& action) const {
    for (const StateTensor& tensor : state_.tensors()) {
      const SavedTensor* saved = source_of(tensor);
      if (saved == nullptr) continue;
      for (const TensorPart& part : saved->parts) {
        const auto copies = copies_of(part, tensor.dtype, tensor.pieces);
        if (copies.empty()) continue;
        const auto file = static_cast<std::size_t>(part.file);
        PartReader reader(*inputs_[file], paths_[file], *saved, part, manifest_.chunk_bytes);
        action(reader, copies);
      }
    }
  }

  FileSystem& files_;
  fs::path folder_;
  const Manifest& manifest_;
  const State& state_;
  std::map<std::string, const SavedTensor*> saved_;
  std::map<std::string, const StateTensor*> wanted_;
  std::vector<fs::path> paths_;
  std::vector<std::unique_ptr<InputFile>> inputs_;
};

}  // namespace

LoadedCheckpoint Checkpoints::load(std::int64_t step, const State& state) {
  FileSystem& files = *options_.file_system;
  const fs::path folder = checkpoint_folder(options_.directory, step);
  std::string text;
  const auto read = [&] {
    if (group_.rank() != 0) return;
    if (!files.exists(folder / manifest_name)) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("there is no checkpoint of step {}; there are those of steps [{}]", step,
                                          fmt::join(committed_steps(options_.directory, files), ", ")),
                   .path = options_.directory.string()});
    }
    text = read_text(files, folder / manifest_name);
  };
  group_.agree(read, "read a checkpoint's manifest");
  // Rank 0's, so that all see the same one.
  const Manifest manifest = parse_manifest(group_.gather_texts(text, "manifest of a checkpoint")[0], folder / manifest_name);
  const Plan plan = make_plan(group_, state);

  Loader loader(files, folder, manifest, state);
  group_.agree([&] { loader.compare(); }, "compare a checkpoint with the run");
  loader.compare_rest(plan);
  group_.agree([&] { loader.check_files(); }, "check a checkpoint");
  group_.agree([&] { loader.fill(); }, "load a checkpoint");
  std::vector<std::uint64_t> sums = loader.digests(plan, group_.rank());
  group_.all_reduce(std::span(sums), ReduceOp::sum, "digests of a checkpoint").wait_on_host();
  loader.compare_digests(sums, plan);
  state.loaded();
  return {.step = manifest.step, .configuration = manifest.configuration};
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
