#include "comm/base/nodes.hpp"

#include "catch.hpp"

using trireme::comm::find_nodes;
using trireme::comm::Nodes;

TEST_CASE("ranks are grouped by the name of their node") {
  const Nodes nodes = find_nodes({"a", "b", "a", "b", "b"}, 3);
  CHECK(nodes.members == std::vector<std::vector<int>>{{0, 2}, {1, 3, 4}});
  CHECK(nodes.node == 1);
  CHECK(nodes.index == 1);
  CHECK(nodes.lanes == 2);
  CHECK(nodes.node_of(2) == 0);
  CHECK(nodes.index_of(4) == 2);
}

TEST_CASE("a rank that shares nothing is a node of its own") {
  const Nodes nodes = find_nodes({"", "a", "", "a"}, 2);
  CHECK(nodes.members == std::vector<std::vector<int>>{{0}, {1, 3}, {2}});
  CHECK(nodes.lanes == 1);
}

TEST_CASE("every rank has a counterpart on every node, the same one for ranks with the same index") {
  const Nodes nodes = find_nodes({"a", "a", "b", "c", "c", "c"}, 0);
  CHECK(nodes.counterpart(1, 1) == 2);
  CHECK(nodes.counterpart(2, 1) == 4);
  CHECK(nodes.counterpart(0, 5) == 0);
}
