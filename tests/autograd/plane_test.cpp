#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "device/fake_gpu.hpp"
#include "device/fake_gpu_planes.hpp"
#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/owned_planes.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

namespace {

class FixedShard final : public Shard {
 public:
  explicit FixedShard(std::vector<Range> ranges) : Shard(std::move(ranges), false) {}
  std::unique_ptr<Publication> publish() override { return nullptr; }
  void sum_over_ranks(std::span<double>) override {}
  void sum_over_ranks(std::span<float>) override {}
};

// 96 elements with gradients, then 16 without.
struct Model {
  FlatStore store;
  int first = store.add("first", {4, 8}, Initializer::constant(1));
  int frozen = store.add("frozen", {5}, Initializer::constant(2));
  int last = store.add("last", {64}, Initializer::constant(3));
  explicit Model(const PlaneDevice& device = plane_device<Cpu>()) : store(DType::float32, DType::float32, device) {
    store.freeze(frozen);
    store.initialize<float>(1);
  }
};

std::vector<Range> visited(FlatStore& store, std::vector<int> planes, const std::vector<Range>& ranges) {
  std::vector<Range> pieces;
  store.visit(planes, ranges, [&](const FlatStore::Piece& piece) { pieces.push_back(piece.range); });
  return pieces;
}

bool same(const std::vector<Range>& pieces, const std::vector<Range>& wanted) {
  return std::ranges::equal(pieces, wanted,
                            [](const Range& a, const Range& b) { return a.begin == b.begin && a.end == b.end; });
}

std::size_t in_use() { return device::host_memory_statistics().in_use_bytes; }

}  // namespace

TEST_CASE("a visit shows where a range lies in each plane, in the order of the ranges") {
  Model model;
  const int counts = model.store.add_plane("counts", {.dtype = DType::int64, .extent = Extent::trainable});
  const int rates = model.store.add_plane("rates", {.dtype = DType::float64, .extent = Extent::all, .initial = 0.25});
  const std::vector<Range> ranges{{40, 80}, {3, 3}, {0, 7}};
  std::vector<Range> seen;
  model.store.visit(std::array{rates, FlatStore::values_number, counts, FlatStore::gradients_number}, ranges,
                    [&](const FlatStore::Piece& piece) {
                      REQUIRE(piece.elements.size() == 4);
                      CHECK(piece.elements[0] == model.store.elements<double>(rates).data() + piece.range.begin);
                      CHECK(piece.elements[1] == model.store.values<float>().data() + piece.range.begin);
                      CHECK(piece.elements[2] == model.store.elements<std::int64_t>(counts).data() + piece.range.begin);
                      CHECK(piece.elements[3] == model.store.gradients<float>().data() + piece.range.begin);
                      seen.push_back(piece.range);
                    });
  CHECK(same(seen, {{40, 80}, {0, 7}}));
  CHECK(visited(model.store, {rates}, {}).empty());
  CHECK(same(visited(model.store, {}, {{1, 2}}), {{1, 2}}));

  CHECK(model.store.elements<double>(rates).numel() == 112);
  CHECK(std::ranges::all_of(model.store.elements<double>(rates).span(), [](double rate) { return rate == 0.25; }));
  CHECK(model.store.elements<std::int64_t>(counts).numel() == 96);
  CHECK(std::ranges::all_of(model.store.elements<std::int64_t>(counts).span(), [](std::int64_t n) { return n == 0; }));
}

TEST_CASE("in mixed precision the rounded copy is a plane of its own") {
  FlatStore store(DType::float32, DType::bfloat16);
  store.add("weight", {4}, Initializer::constant(1));
  store.initialize<float>(1);
  CHECK(store.compute_number() != FlatStore::values_number);
  const Range range{2, 4};
  store.visit(std::array{store.compute_number()}, std::span(&range, 1), [&](const FlatStore::Piece& piece) {
    CHECK(piece.elements[0] == store.compute_values<bfloat16>(0).data() + 2);
    CHECK(static_cast<float>(*static_cast<const bfloat16*>(piece.elements[0])) == 1);
  });
  CHECK(Model().store.compute_number() == FlatStore::values_number);
}

TEST_CASE("a plane of the shard holds what this rank updates, one range after the other") {
  Model model;
  const int moment = model.store.add_plane("moment", {.dtype = DType::float32});
  model.store.set_shard(std::make_shared<FixedShard>(std::vector<Range>{{8, 16}, {16, 16}, {16, 24}, {48, 64}}));
  CHECK(model.store.elements<float>(moment).numel() == 32);
  const float* begin = model.store.elements<float>(moment).data();
  std::vector<const void*> places;
  const std::vector<Range> ranges{{50, 60}, {9, 24}, {30, 30}, {48, 49}};
  model.store.visit(std::array{moment, FlatStore::values_number}, ranges,
                    [&](const FlatStore::Piece& piece) { places.push_back(piece.elements[0]); });
  CHECK(places == std::vector<const void*>{begin + 18, begin + 1, begin + 16});

  for (const Range& outside : {Range{0, 9}, {23, 25}, {8, 64}, {30, 31}, {63, 65}}) {
    int calls = 0;
    CHECK_THROWS_WITH(model.store.visit(std::array{moment}, std::array{Range{8, 9}, outside}, [&](const auto&) { ++calls; }),
                      ContainsSubstring("plane moment holds only what this rank updates"));
    CHECK(calls == 0);
  }
}

TEST_CASE("without a shard such a plane holds all trainable parameters, and frozen ones are in none") {
  Model model;
  const int moment = model.store.add_plane("moment", {.dtype = DType::float32});
  CHECK(same(visited(model.store, {moment, FlatStore::gradients_number}, {{0, 96}}), {{0, 96}}));
  CHECK(same(visited(model.store, {FlatStore::values_number}, {{0, 112}}), {{0, 112}}));
  for (const int plane : {moment, FlatStore::gradients_number}) {
    CHECK_THROWS_WITH(visited(model.store, {FlatStore::values_number, plane}, {{90, 97}}),
                      ContainsSubstring("elements [90, 97) can't be visited") && ContainsSubstring("only [0, 96)"));
  }
  CHECK_THROWS_WITH(visited(model.store, {FlatStore::values_number}, {{-1, 5}}), ContainsSubstring("only [0, 112)"));
  CHECK_THROWS_WITH(visited(model.store, {FlatStore::values_number}, {{5, 4}}), ContainsSubstring("ends before it begins"));
  CHECK(visited(model.store, {moment}, {{200, 200}}).empty());
}

TEST_CASE("a shard that changes after the first use of its planes is an error, before it none") {
  Model model;
  const int moment = model.store.add_plane("moment", {.dtype = DType::float32});
  const int whole = model.store.add_plane("whole", {.dtype = DType::float32, .extent = Extent::trainable});
  model.store.set_shard(std::make_shared<FixedShard>(std::vector<Range>{{0, 16}}));
  model.store.set_shard(std::make_shared<FixedShard>(std::vector<Range>{{0, 32}}));
  CHECK(same(visited(model.store, {moment, whole}, {{0, 32}}), {{0, 32}}));
  model.store.set_shard(nullptr);
  const char* message = "DataParallel was made after the first use of plane moment";
  CHECK_THROWS_WITH(visited(model.store, {moment}, {{0, 32}}), ContainsSubstring(message));
  CHECK_THROWS_WITH(model.store.elements<float>(moment), ContainsSubstring(message));
  State state;
  CHECK_THROWS_WITH(model.store.list_plane(state, moment), ContainsSubstring(message));
  CHECK(same(visited(model.store, {whole}, {{0, 96}}), {{0, 96}}));
}

TEST_CASE("planes are refused that are added twice, of another type, unknown, ended or in a file") {
  Model model;
  const int moment = model.store.add_plane("moment", {.dtype = DType::float32});
  CHECK_THROWS_WITH(model.store.add_plane("moment", {.dtype = DType::float64}),
                    ContainsSubstring("plane moment was added twice"));
  CHECK_THROWS_WITH(model.store.add_plane("values", {.dtype = DType::float32}),
                    ContainsSubstring("plane values was added twice"));
  CHECK_THROWS_WITH(model.store.elements<double>(moment), "the store holds float32 and was asked for float64");
  for (const int unknown : {-1, moment + 1}) {
    CHECK_THROWS_WITH(visited(model.store, {unknown}, {{0, 1}}), ContainsSubstring("the store has no plane"));
    CHECK_THROWS_WITH(model.store.plane(unknown), ContainsSubstring("the store has no plane"));
  }
  CHECK_THROWS_WITH(model.store.add_plane("codes", {.dtype = DType::uint8, .initial = 3}),
                    ContainsSubstring("may start with another value than 0"));
  model.store.remove_plane(moment);
  CHECK_THROWS_WITH(visited(model.store, {moment}, {{0, 1}}), ContainsSubstring("was used after its owner"));
  CHECK_THROWS_WITH(model.store.elements<float>(moment), ContainsSubstring("moment"));
  CHECK_THROWS_AS(model.store.remove_plane(moment), Error);
  CHECK(model.store.add_plane("moment", {.dtype = DType::float32}) != moment);
}

TEST_CASE("a plane has memory from its first use to the end of its owner") {
  Model model;
  const std::size_t before = in_use();
  std::optional<OwnedPlanes> owner(model.store);
  const int moment = owner->add(model.store, "moment", {.dtype = DType::float64});
  CHECK(in_use() == before);
  visited(model.store, {moment}, {{0, 16}});
  CHECK(in_use() >= before + 96 * sizeof(double));

  OwnedPlanes other(model.store);  // may use the same name
  const int second = other.add(model.store, "moment", {.dtype = DType::float64});
  CHECK(model.store.elements<double>(second).data() != model.store.elements<double>(moment).data());
  CHECK_THROWS_AS(other.add(model.store, "moment", {.dtype = DType::float64}), Error);
  const std::size_t both = in_use();
  owner.reset();
  CHECK(in_use() + 96 * sizeof(double) <= both);
  CHECK_THROWS_AS(model.store.plane(moment), Error);
  CHECK(model.store.elements<double>(second).numel() == 96);
}

TEST_CASE("an owner of planes may outlive the store, which may move") {
  std::optional<FlatStore> store(DType::float32);
  store->add("weight", {64}, Initializer::constant(1));
  OwnedPlanes owner(*store);
  const int moment = owner.add(*store, "moment", {.dtype = DType::float32});
  FlatStore moved = std::move(*store);
  store.reset();
  CHECK(moved.elements<float>(moment).numel() == 64);
  moved = FlatStore(DType::float32);
}

TEST_CASE("gradients that nobody has used move as zeros, those in use as they are") {
  for (const bool used : {false, true}) {
    Model model;
    if (used) model.store.gradient<float>(model.last).data()[5] = 7;
    model.store.relocate(device::host_memory());
    for (std::int64_t index = 0; index < 96; ++index) {
      CHECK(model.store.gradients<float>().data()[index] == (used && index == 5 ? 7 : 0));
    }
    CHECK(model.store.values<float>(model.last).data()[0] == 3);
  }
}

TEST_CASE("a state knows where planes lie, and is refused when they do so no longer") {
  Model model;
  State state;
  model.store.add_to(state, "model.");
  std::optional<OwnedPlanes> owner(model.store);
  const int moment = owner->add(model.store, "moment", {.dtype = DType::float64});
  model.store.set_shard(std::make_shared<FixedShard>(std::vector<Range>{{8, 16}, {60, 70}}));
  void* place = model.store.list_plane(state, moment);
  const double* begin = model.store.elements<double>(moment).data();
  const StateTensor last = model.store.listed("last", moment, place, model.last);
  REQUIRE(last.pieces.size() == 2);
  CHECK((last.dtype == DType::float64 && last.shape == Shape{64}));
  CHECK((last.pieces[0].data == begin && same({last.pieces[0].elements}, {{8, 16}})));
  CHECK((last.pieces[1].data == begin + 8 && same({last.pieces[1].elements}, {{60, 64}})));
  const StateTensor first = model.store.listed("first", moment, place, model.first);
  REQUIRE(first.pieces.size() == 1);
  CHECK((first.pieces[0].data == begin + 12 && same({first.pieces[0].elements}, {{0, 6}})));
  CHECK(model.store.listed("frozen", moment, place, model.frozen).pieces.empty());

  state.prepare();
  owner.reset();
  CHECK_THROWS_WITH(state.prepare(), ContainsSubstring("refers to old memory of the plane moment"));
  State values;
  model.store.add_to(values);
  values.prepare();
  model.store.relocate(device::host_memory());
  CHECK_THROWS_WITH(values.prepare(), ContainsSubstring("make the State after DataParallel"));
}

TEST_CASE("a plane at home on the host comes to a GPU piece by piece and goes back changed") {
  FlatStore store(DType::float32, DType::float32, test::fake_gpu_planes());
  const std::int64_t numel = (std::int64_t{1} << 20) + 100;
  store.add("weight", {numel}, Initializer::constant(1));
  store.initialize<float>(1);
  const int moment = store.add_plane("moment", {.dtype = DType::float32, .home = Home::host, .initial = 0.5});
  const int near = store.add_plane("near", {.dtype = DType::float32, .initial = 2});
  const Range all{10, numel};
  std::vector<Range> pieces;
  const auto add_index = [&](const FlatStore::Piece& piece) {
    pieces.push_back(piece.range);
    for (const void* element : piece.elements) CHECK(test::is_on_fake_gpu(element));
    auto* moments = reinterpret_cast<float*>(test::reach_fake_gpu(piece.elements[1]));
    auto* nears = reinterpret_cast<float*>(test::reach_fake_gpu(piece.elements[2]));
    for (std::int64_t at = piece.range.begin; at < piece.range.end; ++at) {
      moments[at - piece.range.begin] += static_cast<float>(at % 1000);
      nears[at - piece.range.begin] += static_cast<float>(at % 1000);
    }
  };
  for (int time = 0; time < 2; ++time) {
    store.visit(std::array{FlatStore::values_number, moment, near}, std::span(&all, 1), add_index);
  }
  CHECK(same({pieces.begin(), pieces.begin() + 2}, {{10, 10 + (1 << 20)}, {10 + (1 << 20), numel}}));
  const auto host = store.elements<float>(moment).span();
  const auto* there = reinterpret_cast<const float*>(test::reach_fake_gpu(store.plane(near)->data()));
  for (std::int64_t at = 0; at < numel; ++at) {
    const auto added = at < 10 ? 0.0F : 2 * static_cast<float>(at % 1000);
    REQUIRE(host[static_cast<std::size_t>(at)] == 0.5F + added);
    REQUIRE(there[at] == 2 + added);
  }
  CHECK_THROWS_WITH(store.elements<float>(near), ContainsSubstring("on another device than the one asked for"));
  State state;
  CHECK(store.list_plane(state, moment) == host.data());
}
