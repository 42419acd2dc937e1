#include "trireme/mesh/process_mesh.hpp"

#include "catch.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

// The world ranks of a group, in group order.
std::vector<std::int32_t> members(const Group& group, int world_rank) {
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(group.size()), 0);
  ranks[static_cast<std::size_t>(group.rank())] = world_rank;
  group.all_reduce(std::span(ranks)).wait_on_host();
  return ranks;
}

}  // namespace

TEST_CASE("the tensor axis varies fastest, then pipeline, then data") {
  std::vector<std::vector<std::int32_t>> of_rank_5(3);
  testing::run_ranks(8, [&](const Group& world) {
    const ProcessMesh mesh(world, {.data = 2, .pipeline = 2, .tensor = 2});
    const std::vector all{members(mesh.data(), world.rank()), members(mesh.pipeline(), world.rank()),
                          members(mesh.tensor(), world.rank())};
    if (world.rank() == 5) of_rank_5 = all;
  });
  CHECK(of_rank_5[0] == std::vector<std::int32_t>{1, 5});
  CHECK(of_rank_5[1] == std::vector<std::int32_t>{5, 7});
  CHECK(of_rank_5[2] == std::vector<std::int32_t>{4, 5});
}

TEST_CASE("ranks of an expert axis share out the batch with those of the data axis") {
  std::vector<std::vector<std::int32_t>> of_rank_2(3);
  testing::run_ranks(4, [&](const Group& world) {
    const ProcessMesh mesh(world, {.expert = 2});
    const std::vector all{members(mesh.data(), world.rank()), members(mesh.expert(), world.rank()),
                          members(mesh.batch(), world.rank())};
    if (world.rank() == 2) of_rank_2 = all;
  });
  CHECK(of_rank_2[0] == std::vector<std::int32_t>{0, 2});
  CHECK(of_rank_2[1] == std::vector<std::int32_t>{2, 3});
  CHECK(of_rank_2[2] == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK_THROWS_AS(testing::run_ranks(4, [](const Group& world) { const ProcessMesh mesh(world, {.tensor = 2, .expert = 2}); }),
                  Error);
}

TEST_CASE("the pipeline axis varies faster than the expert axis, and stages have samples together") {
  std::vector<std::vector<std::int32_t>> of_rank_5(5);
  testing::run_ranks(8, [&](const Group& world) {
    const ProcessMesh mesh(world, {.pipeline = 2, .expert = 2});
    std::vector<std::vector<std::int32_t>> all;
    for (const Group* group : {&mesh.data(), &mesh.expert(), &mesh.pipeline(), &mesh.tensor(), &mesh.batch()}) {
      all.push_back(members(*group, world.rank()));
    }
    if (world.rank() == 5) of_rank_5 = all;
  });
  CHECK(of_rank_5[0] == std::vector<std::int32_t>{1, 5});
  CHECK(of_rank_5[1] == std::vector<std::int32_t>{5, 7});
  CHECK(of_rank_5[2] == std::vector<std::int32_t>{4, 5});
  CHECK(of_rank_5[3] == std::vector<std::int32_t>{5});
  CHECK(of_rank_5[4] == std::vector<std::int32_t>{1, 3, 5, 7});
}

TEST_CASE("data takes the ranks that are left, and sizes that do not fit are refused on all ranks") {
  int data_size = 0;
  testing::run_ranks(6, [&](const Group& world) {
    const ProcessMesh mesh(world, {.tensor = 3});
    if (world.rank() == 0) data_size = mesh.data().size();
  });
  CHECK(data_size == 2);
  CHECK_THROWS_AS(testing::run_ranks(6, [](const Group& world) { const ProcessMesh mesh(world, {.tensor = 4}); }), Error);
  CHECK_THROWS_AS(testing::run_ranks(2, [](const Group& world) { const ProcessMesh mesh(world, {.pipeline = 0}); }), Error);
}
