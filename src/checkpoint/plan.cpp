#include "checkpoint/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "checkpoint/json.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

[[noreturn]] void refuse(const std::string& name, std::string message) {
  throw Error({.code = ErrorCode::rank_mismatch, .message = std::move(message), .operation = "checkpoint", .name = name});
}

SavedValue value_at(const State::NamedValue& value) {
  return std::visit([](const auto* place) { return SavedValue(*place); }, value.place);
}

std::string text_of(const SavedValue& value) {
  return std::visit([](const auto& known) { return fmt::format("{}", known); }, value);
}

// The parts of a tensor that the ranks hold.
struct Holding {
  const Inventory::Tensor* first = nullptr;  // from the lowest rank that holds it
  int first_rank = 0;
  struct Part {
    std::vector<Runs> runs;
    std::vector<int> ranks;
  };
  std::vector<Part> parts;
};

void add(Holding& holding, const Inventory::Tensor& tensor, int rank) {
  if (holding.first == nullptr) {
    holding.first = &tensor;
    holding.first_rank = rank;
  }
  const Inventory::Tensor& first = *holding.first;
  if (first.dtype != tensor.dtype || first.shape != tensor.shape || first.optional != tensor.optional) {
    refuse(tensor.name, fmt::format("rank {} holds it as {} {}, rank {} as {} {}", holding.first_rank, name_of(first.dtype),
                                    first.shape, rank, name_of(tensor.dtype), tensor.shape));
  }
  if (tensor.runs.empty()) return;
  for (Holding::Part& part : holding.parts) {
    if (part.runs == tensor.runs) {
      part.ranks.push_back(rank);
      return;
    }
  }
  holding.parts.push_back({.runs = tensor.runs, .ranks = {rank}});
}

// Makes parts disjoint. Ranks may hold overlapping parts, for example where two stages shard a tied weight differently.
void resolve_overlaps(Holding& holding) {
  std::vector<Range> taken;
  for (Holding::Part& part : holding.parts) {
    const std::vector<Range> own = without(ranges_of(part.runs), taken);
    part.runs = runs_of(own);
    taken.insert(taken.end(), own.begin(), own.end());
    std::ranges::sort(taken, {}, &Range::begin);
  }
  std::erase_if(holding.parts, [](const Holding::Part& part) { return part.runs.empty(); });
  std::int64_t last = 0;
  for (const Range& range : taken) {
    if (range.begin > last) break;
    last = range.end;
  }
  if (last != holding.first->shape.numel()) {
    refuse(holding.first->name, fmt::format("no rank holds element {} of {}", last, holding.first->shape));
  }
}

std::int64_t bytes_of(const PlannedTensor& tensor, std::span<const Runs> runs) {
  return numel_of(runs) * static_cast<std::int64_t>(size_of(tensor.dtype));
}

// Assigns parts, largest first, each to the rank among its holders with the fewest bytes so far.
void share_out(std::vector<PlannedTensor>& tensors, const std::map<std::string, Holding>& holdings, std::size_t num_ranks) {
  struct Candidate {
    PlannedPart* part;
    const std::vector<int>* ranks;
    std::int64_t bytes;
  };
  std::vector<Candidate> candidates;
  for (PlannedTensor& tensor : tensors) {
    const Holding& holding = holdings.at(tensor.name);
    for (std::size_t index = 0; index < holding.parts.size(); ++index) {
      candidates.push_back({&tensor.parts[index], &holding.parts[index].ranks, bytes_of(tensor, holding.parts[index].runs)});
    }
  }
  std::ranges::stable_sort(candidates, std::ranges::greater{}, &Candidate::bytes);
  std::vector<std::int64_t> load(num_ranks, 0);
  for (const Candidate& candidate : candidates) {
    const auto load_of = [&](int rank) { return load[static_cast<std::size_t>(rank)]; };
    candidate.part->rank = *std::ranges::min_element(*candidate.ranks, {}, load_of);
    load[static_cast<std::size_t>(candidate.part->rank)] += candidate.bytes;
  }
}

}  // namespace

Inventory inventory_of(const State& state) {
  Inventory inventory;
  for (const StateTensor& tensor : state.tensors()) {
    std::vector<Range> ranges;
    for (const StatePiece& piece : tensor.pieces) {
      if (piece.elements.count() > 0) ranges.push_back(piece.elements);
    }
    inventory.tensors.push_back({.name = tensor.name,
                                 .dtype = tensor.dtype,
                                 .shape = tensor.shape,
                                 .optional = tensor.optional,
                                 .runs = runs_of(ranges)});
  }
  for (const State::NamedValue& value : state.values()) {
    const SavedValue saved = value_at(value);
    if (const auto* text = std::get_if<std::string>(&saved)) require_utf8(value.name, *text);
    inventory.values.emplace(value.name, saved);
  }
  return inventory;
}

std::string to_text(const Inventory& inventory) {
  Json tensors = Json::array();
  for (const Inventory::Tensor& tensor : inventory.tensors) {
    tensors.push_back({tensor.name, name_of(tensor.dtype), tensor.shape.dims(), tensor.optional, json_of(tensor.runs)});
  }
  return Json{std::move(tensors), json_of(inventory.values)}.dump();
}

Inventory parse_inventory(std::string_view text) {
  const Json json = Json::parse(text);
  Inventory inventory;
  for (const Json& tensor : json[0]) {
    inventory.tensors.push_back({.name = tensor[0],
                                 .dtype = dtype_named(tensor[1].get<std::string>()).value(),
                                 .shape = Shape(tensor[2].get<std::vector<std::int64_t>>()),
                                 .optional = tensor[3],
                                 .runs = runs_of_json(tensor[4]).value()});
  }
  for (const auto& [name, value] : json[1].items()) inventory.values[name] = value_of_json(value).value();
  return inventory;
}

std::vector<Plan::Place> Plan::places_of(int rank) const {
  std::vector<Place> places;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    for (std::size_t part = 0; part < tensors[tensor].parts.size(); ++part) {
      if (tensors[tensor].parts[part].rank == rank) places.push_back({tensor, part});
    }
  }
  std::ranges::stable_sort(places, std::ranges::greater{},
                           [&](const Place& place) { return size_of(tensors[place.tensor].dtype); });
  return places;
}

Plan make_plan(const std::vector<Inventory>& by_rank) {
  Plan plan;
  std::map<std::string, Holding> holdings;
  std::map<std::string, int> value_ranks;
  for (std::size_t index = 0; index < by_rank.size(); ++index) {
    const int rank = static_cast<int>(index);
    for (const Inventory::Tensor& tensor : by_rank[index].tensors) add(holdings[tensor.name], tensor, rank);
    for (const auto& [name, value] : by_rank[index].values) {
      const auto [known, is_new] = plan.values.emplace(name, value);
      if (is_new) value_ranks[name] = rank;
      if (!is_same(known->second, value)) {
        refuse(name, fmt::format("it is {} on rank {} and {} on rank {}", text_of(known->second), value_ranks[name],
                                 text_of(value), rank));
      }
    }
  }
  for (auto& [name, holding] : holdings) {
    resolve_overlaps(holding);
    PlannedTensor tensor{.name = name,
                         .dtype = holding.first->dtype,
                         .shape = holding.first->shape,
                         .optional = holding.first->optional,
                         .parts = {}};
    for (const Holding::Part& part : holding.parts) tensor.parts.push_back({.runs = part.runs});
    plan.tensors.push_back(std::move(tensor));
  }
  share_out(plan.tensors, holdings, by_rank.size());
  return plan;
}

Plan make_plan(const Group& group, const State& state) {
  std::string text;
  const auto list = [&] {
    state.prepare();
    text = to_text(inventory_of(state));
  };
  group.agree(list, "list the state");
  std::vector<Inventory> by_rank;
  for (const std::string& its : group.gather_texts(text, "list the state")) by_rank.push_back(parse_inventory(its));
  return make_plan(by_rank);
}

std::vector<Range> without(const std::vector<Range>& ranges, const std::vector<Range>& taken) {
  std::vector<Range> left;
  auto next = taken.begin();
  for (const Range& range : ranges) {
    std::int64_t begin = range.begin;
    while (next != taken.end() && next->end <= begin) ++next;
    for (auto at = next; at != taken.end() && at->begin < range.end; ++at) {
      if (at->begin > begin) left.push_back({begin, at->begin});
      begin = std::max(begin, at->end);
    }
    if (begin < range.end) left.push_back({begin, range.end});
  }
  return left;
}

std::vector<StatePiece> pieces_of(const std::vector<Range>& ranges, const StateTensor& tensor) {
  std::vector<StatePiece> pieces;
  const std::size_t element_bytes = size_of(tensor.dtype);
  auto next = tensor.pieces.begin();
  for (const Range& range : ranges) {
    while (next->elements.end <= range.begin) ++next;
    for (auto at = next; at != tensor.pieces.end() && at->elements.begin < range.end; ++at) {
      const Range both{std::max(range.begin, at->elements.begin), std::min(range.end, at->elements.end)};
      const auto before = static_cast<std::size_t>(both.begin - at->elements.begin) * element_bytes;
      pieces.push_back({.data = static_cast<std::byte*>(at->data) + before, .elements = both});
    }
  }
  return pieces;
}

}  // namespace trireme::checkpoint
