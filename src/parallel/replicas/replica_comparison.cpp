#include "parallel/replicas/replica_comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <type_traits>
#include <utility>

#include "parallel/step/planes.hpp"
#include "trireme/files/digest.hpp"

namespace trireme::parallel {
namespace {

using Digests = std::vector<std::uint64_t>;

constexpr std::string_view operation = "compare replicas";

// The digests of all replicas, by rank.
std::vector<Digests> gather(const Group& replicas, const Digests& own) {
  std::vector<Digests> all;
  for (const std::string& text : replicas.gather_texts(nlohmann::json(own).dump(), operation)) {
    all.push_back(nlohmann::json::parse(text).get<Digests>());
  }
  return all;
}

// The places at which not all replicas have the same digest.
std::vector<std::size_t> differences(const std::vector<Digests>& all) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < all.front().size(); ++place) {
    if (std::ranges::any_of(all, [&](const Digests& of) { return of[place] != all.front()[place]; })) places.push_back(place);
  }
  return places;
}

// The ranks with the most frequent value (the first such value if several are equally frequent), and the others.
struct Camps {
  bool majority = false;
  std::vector<int> most = {};
  std::vector<int> others = {};
};

Camps camps_of(const std::vector<std::string>& texts) {
  const auto votes = [&](const std::string& text) { return std::ranges::count(texts, text); };
  const std::string& winner = *std::ranges::max_element(texts, {}, votes);
  Camps camps{.majority = 2 * votes(winner) > std::ssize(texts)};
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    (texts[rank] == winner ? camps.most : camps.others).push_back(static_cast<int>(rank));
  }
  return camps;
}

template <typename T>
std::string value_text(T value) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return fmt::format("{} (bits {:0{}x})", value, std::bit_cast<Bits>(value), 2 * sizeof(T));
}

}  // namespace

ReplicaComparison::ReplicaComparison(FlatStore& store, const ProcessMesh& mesh, int num_steps, bool buffers)
    : store_(store),
      replicas_(mesh.data()),
      experts_(mesh.expert()),
      num_steps_(num_steps),
      num_parts_(mesh.pipeline().size() * mesh.tensor().size() * mesh.expert().size()),
      part_((mesh.expert().rank() * mesh.pipeline().size() + mesh.pipeline().rank()) * mesh.tensor().size() +
            mesh.tensor().rank()),
      tied_(store.tied()),
      num_stages_(mesh.pipeline().size()),
      pipeline_rank_(mesh.pipeline().rank()) {
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    add(parameter.name, index, false, parameter.placement.split(), parameter.numel);
  }
  for (int index = 0; buffers && index < store.buffers().size(); ++index) {
    const BufferInfo& buffer = store.buffers().info(index);
    if (buffer.options.reduction != BufferReduction::mean) continue;  // others are equal only after the step
    add(buffer.name, index, true, false, buffer.shape.numel());
  }
}

void ReplicaComparison::add(std::string name, int index, bool buffer, bool split, std::int64_t numel) {
  tensors_.push_back(
      {.name = std::move(name), .index = index, .buffer = buffer, .split = split, .begin = numel_, .numel = numel});
  numel_ += numel;
}

template <typename Action>
auto ReplicaComparison::with_values_of(const Compared& tensor, const Range& elements, const Action& action) const {
  BufferPlane& buffers = store_.buffers();
  const std::int64_t offset = tensor.buffer ? buffers.info(tensor.index).offset : store_.parameter(tensor.index).offset;
  return with_elements_on_host(store_, tensor.buffer ? buffers.plane() : store_.value_plane(),
                               {offset + elements.begin, offset + elements.end}, action);
}

std::uint64_t ReplicaComparison::digest_of(const Compared& tensor, const Range& elements) const {
  return with_values_of(tensor, elements, [&](auto values) { return digest(tensor.name, values, elements.begin); });
}

// A digest of the tensors in a range that the ranks of an axis split, or of the other tensors.
std::uint64_t ReplicaComparison::digest_of(const Range& compared, bool split) const {
  std::uint64_t sum = 0;
  auto tensor = std::ranges::upper_bound(tensors_, compared.begin, {}, &Compared::begin);
  if (tensor != tensors_.begin()) --tensor;
  for (; tensor != tensors_.end() && tensor->begin < compared.end; ++tensor) {
    if (tensor->split != split) continue;
    const Range elements{std::max<std::int64_t>(compared.begin - tensor->begin, 0),
                         std::min(compared.end - tensor->begin, tensor->numel)};
    if (elements.count() > 0) sum += digest_of(*tensor, elements);
  }
  return sum;
}

void ReplicaComparison::add_part_to(SummaryFields& fields, std::int64_t steps_before, std::int64_t step,
                                    const Group& ranks) const {
  const auto part_of = [turn = steps_before % num_steps_, steps = num_steps_](std::int64_t numel) {
    return Range{numel * turn / steps, numel * (turn + 1) / steps};
  };
  add_to(fields, part_of, step, ranks);
}

void ReplicaComparison::add_all_to(SummaryFields& fields, std::int64_t step, const Group& ranks) const {
  add_to(
      fields,
      [](std::int64_t numel) {
        return Range{0, numel};
      },
      step, ranks);
}

// Two numbers for each part of the model, two for the parameters of each stage that the ranks of an expert axis share, then two
// for each tied parameter.
void ReplicaComparison::add_to(SummaryFields& fields, PartOf part_of, std::int64_t step, const Group& ranks) const {
  fields.add({.size = 2 * (static_cast<std::size_t>(num_parts_) + static_cast<std::size_t>(num_stages_) + tied_.size()),
              .write = [this, part_of = std::move(part_of)](std::span<double> numbers) { write(numbers, part_of); },
              .read = [this, step, &ranks](std::span<const double> sums) { check(sums, step, ranks); }});
}

// Among ranks that should hold the same, the first adds its digest times (ranks - 1) and each other subtracts its own: the sum
// is zero if they are equal. The numbers are integers that are exact in a double.
void ReplicaComparison::write(std::span<double> numbers, const PartOf& part_of) const {
  const auto num_parts = static_cast<std::size_t>(num_parts_);
  const auto num_stages = static_cast<std::size_t>(num_stages_);
  const auto put = [&](std::size_t place, bool is_first, std::size_t size, std::uint64_t digest) {
    const double weight = is_first ? static_cast<double>(size) - 1 : -1;
    numbers[2 * place] = weight * static_cast<double>(digest >> 32);
    numbers[2 * place + 1] = weight * static_cast<double>(digest & 0xffffffff);
  };
  const Range compared = part_of(numel_);
  const bool of_replicas = replicas_.size() > 1, of_experts = experts_.size() > 1;
  const std::uint64_t shared = of_replicas || of_experts ? digest_of(compared, false) : 0;
  if (of_replicas) {
    put(static_cast<std::size_t>(part_), replicas_.rank() == 0, static_cast<std::size_t>(replicas_.size()),
        shared + digest_of(compared, true));
  }
  if (of_experts) {
    put(num_parts + static_cast<std::size_t>(pipeline_rank_), experts_.rank() == 0, static_cast<std::size_t>(experts_.size()),
        shared);
  }
  for (std::size_t tied = 0; tied < tied_.size(); ++tied) {
    const auto& [name, ranks, index] = tied_[tied];
    if (index < 0) continue;
    const Compared& tensor = tensors_[static_cast<std::size_t>(index)];
    put(num_parts + num_stages + tied, pipeline_rank_ == ranks.front(), ranks.size(), digest_of(tensor, part_of(tensor.numel)));
  }
}

void ReplicaComparison::check(std::span<const double> sums, std::int64_t step, const Group& ranks) const {
  const auto differ = [](double sum) { return sum != 0; };
  if (std::ranges::none_of(sums, differ)) return;
  const auto differs_at = [&](int place) {
    return std::ranges::any_of(sums.subspan(2 * static_cast<std::size_t>(place), 2), differ);
  };
  const auto of_parts = 2 * static_cast<std::size_t>(num_parts_);
  const bool replicas_differ = std::ranges::any_of(sums.first(of_parts), differ);
  const bool experts_differ_here = !replicas_differ && differs_at(num_parts_ + pipeline_rank_);
  ranks.agree(
      [&] {
        if (differs_at(part_)) report(step, ranks.rank());
        if (experts_differ_here) throw experts_differ(step);
        for (std::size_t tied = 0; tied < tied_.size() && !replicas_differ; ++tied) {
          if (differs_at(num_parts_ + num_stages_ + static_cast<int>(tied))) throw tied_differ(step, tied_[tied].name);
        }
      },
      operation);
}

// Called by all ranks of the stage.
Error ReplicaComparison::experts_differ(std::int64_t step) const {
  Digests own;
  for (const Compared& tensor : tensors_) own.push_back(tensor.split ? 0 : digest_of(tensor, {0, tensor.numel}));
  const std::vector<Digests> all = gather(experts_, own);
  const std::vector<std::size_t> places = differences(all);
  const std::string name = places.empty() ? "a parameter" : tensors_[places.front()].name;
  return Error(
      {.code = ErrorCode::diverged,
       .message = fmt::format("the ranks of the expert axis no longer hold the same values of {}, which is no expert's, in "
                              "step {} (from 0)",
                              name, step),
       .operation = std::string(operation),
       .name = places.empty() ? "" : name,
       .hint = "start again from an earlier checkpoint, and look at the machines if the program changes no weights on some "
               "ranks alone"});
}

Error ReplicaComparison::tied_differ(std::int64_t step, const std::string& name) {
  return Error(
      {.code = ErrorCode::diverged,
       .message = fmt::format("the stages that hold the tied parameter {} no longer hold the same values in step {} (from 0)",
                              name, step),
       .operation = std::string(operation),
       .name = name,
       .hint = "start again from an earlier checkpoint, and look at the machines if the program changes no weights on some "
               "stages alone"});
}

// Finds the element in rounds; each divides the rest into `pieces` and compares their digests. Nothing if there is no
// difference any more.
std::optional<std::int64_t> ReplicaComparison::first_difference_in(const Compared& tensor) const {
  constexpr std::int64_t pieces = 64;
  Range rest{0, tensor.numel};
  while (rest.count() > 1) {
    const std::int64_t size = (rest.count() + pieces - 1) / pieces;
    Digests own;
    for (std::int64_t begin = rest.begin; begin < rest.end; begin += size) {
      own.push_back(digest_of(tensor, {begin, std::min(begin + size, rest.end)}));
    }
    const std::vector<std::size_t> places = differences(gather(replicas_, own));
    if (places.empty()) return std::nullopt;
    const auto place = static_cast<std::int64_t>(places.front());
    rest = {rest.begin + place * size, std::min(rest.begin + (place + 1) * size, rest.end)};
  }
  return rest.begin;
}

// The world ranks of replicas: the data axis varies slowest.
std::string ReplicaComparison::ranks_text(const std::vector<int>& replicas, int rank) const {
  std::vector<int> ranks;
  for (const int replica : replicas) ranks.push_back(rank + (replica - replicas_.rank()) * num_parts_);
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

// All replicas see the same digests and values, so all of them call this.
Error ReplicaComparison::passing(std::int64_t step, int rank) const {
  std::vector<int> all(static_cast<std::size_t>(replicas_.size()));
  std::iota(all.begin(), all.end(), 0);
  return Error(
      {.code = ErrorCode::diverged,
       .message = fmt::format("the digests of the replicas' values differed in step {} (from 0), but the values are "
                              "equal when they are compared again: one of {} read or computed something else for a moment",
                              step, ranks_text(all, rank)),
       .operation = std::string(operation),
       .hint = "test memory and processors of these machines; start again from an earlier checkpoint"});
}

void ReplicaComparison::report(std::int64_t step, int rank) const {
  Digests own;
  for (const Compared& tensor : tensors_) own.push_back(digest_of(tensor, {0, tensor.numel}));
  const std::vector<Digests> all = gather(replicas_, own);
  const std::vector<std::size_t> places = differences(all);
  if (places.empty()) throw passing(step, rank);
  const Compared& tensor = tensors_[places.front()];
  const std::optional<std::int64_t> found = first_difference_in(tensor);
  if (!found) throw passing(step, rank);
  const std::int64_t element = *found;
  const std::vector<std::string> values = replicas_.gather_texts(
      with_values_of(tensor, {element, element + 1}, [](auto only) { return value_text(only.front()); }), operation);
  const Camps camps = camps_of(values);
  if (camps.others.empty()) throw passing(step, rank);
  const auto most = static_cast<std::size_t>(camps.most.front());
  const auto other = static_cast<std::size_t>(camps.others.front());
  const std::string others = ranks_text(camps.others, rank);
  const auto digest_text = [&](std::size_t replica) {
    return fmt::format("digest {:016x} on {}", all[replica][places.front()], ranks_text({static_cast<int>(replica)}, rank));
  };
  throw Error(
      {.code = ErrorCode::diverged,
       .message = fmt::format("the replicas no longer hold the same values in step {} (from 0): element {} of {} is {} "
                              "on {} and {} on {}; {} of {} parameters and buffers differ",
                              step, element, tensor.name, values[other], others, values[most], ranks_text(camps.most, rank),
                              places.size(), tensors_.size()),
       .rank = rank + (camps.others.front() - replicas_.rank()) * num_parts_,
       .operation = std::string(operation),
       .name = tensor.name,
       .wanted = digest_text(most),
       .had = digest_text(other),
       .hint = fmt::format("{}; start again from an earlier checkpoint, and look at the machine if the program changes no "
                           "weights on some ranks alone",
                           camps.majority ? fmt::format("most replicas contradict {}", others)
                                          : std::string("no majority shows which of them is right"))});
}

}  // namespace trireme::parallel
