#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "trireme/autograd/observer.hpp"

namespace trireme::tests {

// Writes down what it sees before the work; after() must come for the innermost operation that is open.
struct Diary : Observer {
  struct Entry {
    Pass pass;
    std::uint64_t number;
    std::string name;
    Attributes attributes;
    std::vector<Operand> operands;
    std::vector<Operand> results;
  };
  std::vector<Entry> entries;
  std::vector<std::pair<Pass, std::uint64_t>> open;

  void before(Pass pass, const OperationView& view) override {
    open.emplace_back(pass, view.number);
    entries.push_back({pass,
                       view.number,
                       std::string(view.name),
                       view.attributes(),
                       {view.operands.begin(), view.operands.end()},
                       {view.results.begin(), view.results.end()}});
  }
  void after(Pass pass, const OperationView& view) override {
    REQUIRE_FALSE(open.empty());
    CHECK(open.back() == std::pair(pass, view.number));
    open.pop_back();
  }
  std::vector<std::string> names(Pass pass) const {
    std::vector<std::string> names;
    for (const Entry& entry : entries) {
      if (entry.pass == pass) names.push_back(entry.name);
    }
    return names;
  }
};

}  // namespace trireme::tests
