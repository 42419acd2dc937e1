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

// Numbers that the ranks add up in the one all-reduce of a step.
struct SummaryField {
  std::size_t size = 1;                                     // the same on all ranks
  std::function<void(std::span<double>)> write = {};        // writes this rank's numbers, which are 0 before
  std::function<void(std::span<const double>)> check = {};  // gets the sums before any field is read; may throw, on all ranks
  std::function<void(std::span<const double>)> read = {};   // gets the sums
};

// All fields of a step. A number that is needed from all ranks after a step takes a field, but no further collective.
//
//   SummaryFields fields;
//   fields.add({.write = [&](auto own) { own[0] = seconds; }, .read = [&](auto sums) { seconds = sums[0] / ranks.size(); }});
//   fields.reduce(ranks, ReduceOp::sum, "step summary").wait_on_host();
//   fields.read();
class SummaryFields {
 public:
  void add(SummaryField field) { fields_.push_back(std::move(field)); }

  // Writes all fields and begins to add them up. All ranks must have added the same fields in the same order.
  Pending reduce(const Group& ranks, ReduceOp op, std::string_view name);

  // Call it when the sums are there.
  void read() const;

 private:
  // Calls action(field, its numbers) for each field.
  template <typename Action>
  static void for_each(const std::vector<SummaryField>& fields, auto numbers, const Action& action);

  std::vector<SummaryField> fields_;
  std::vector<double> numbers_;  // of all fields, one after the other
};

// `all` gets the requests of any rank.
void add_requests(SummaryFields& fields, const StepRequests& own, StepRequests& all);

// Checks that all ranks are in the step with this number; otherwise Error{rank_mismatch} names those that are not.
void add_step_number(SummaryFields& fields, std::int64_t number, const Group& ranks);

}  // namespace trireme::parallel
