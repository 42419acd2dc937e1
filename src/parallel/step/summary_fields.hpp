#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/comm/base/group.hpp"
#include "trireme/core/step_summary.hpp"

namespace trireme::parallel {

// Numbers that the ranks add up in the one all-reduce of a step, as whoever has them tells of them.
struct SummaryField {
  std::size_t size = 1;                                     // the same on all ranks
  std::function<void(std::span<double>)> write = {};        // this rank's numbers; what it leaves is 0
  std::function<void(std::span<const double>)> check = {};  // of the sums, before any field is read; throws on all ranks alike
  std::function<void(std::span<const double>)> read = {};   // of the sums
};

// All of them: what is to be known of all ranks after a step costs a field, and no further collective.
//
//   SummaryFields fields;
//   fields.add({.write = [&](auto own) { own[0] = seconds; }, .read = [&](auto sums) { seconds = sums[0] / ranks.size(); }});
//   fields.reduce(ranks, ReduceOp::sum, "step summary").wait_on_host();
//   fields.read();
class SummaryFields {
 public:
  void add(SummaryField field) { fields_.push_back(std::move(field)); }

  // Writes all fields and begins to add them up. All ranks have added the same fields in the same order.
  Pending reduce(const Group& ranks, ReduceOp op, std::string_view name);

  // When that is done.
  void read() const;

 private:
  // Calls action(field, its numbers).
  template <typename Action>
  static void for_each(const std::vector<SummaryField>& fields, auto numbers, const Action& action);

  std::vector<SummaryField> fields_;
  std::vector<double> numbers_;  // of all fields, one after the other
};

// What any rank asks for.
void add_requests(SummaryFields& fields, const StepRequests& own, StepRequests& all);

// That all ranks are in the step with this number: otherwise Error{rank_mismatch} names those that are not.
void add_step_number(SummaryFields& fields, std::int64_t number, const Group& ranks);

}  // namespace trireme::parallel
