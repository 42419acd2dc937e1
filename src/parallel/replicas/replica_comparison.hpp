#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/step/summary_fields.hpp"
#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/error.hpp"
#include "trireme/mesh/process_mesh.hpp"

namespace trireme::parallel {

// Checks that replicas still hold the same values, and so do stages with a tied parameter and ranks of an expert axis (without
// their experts). Each step digests one of num_steps parts of the values and compares the digests in the step's summary. If
// replicas differ, all ranks look for the first element that does.
class ReplicaComparison {
 public:
  ReplicaComparison(FlatStore& store, const ProcessMesh& mesh, int num_steps, bool buffers);

  // Compare a part of the values, or all of them; after num_steps() steps all parts were compared. They add numbers whose sums
  // over the ranks of the mesh, the group `ranks`, are zero if the replicas agree. Otherwise reading the fields throws the same
  // Error{diverged} on all ranks.
  void add_part_to(SummaryFields& fields, std::int64_t steps_before, std::int64_t step, const Group& ranks) const;
  void add_all_to(SummaryFields& fields, std::int64_t step, const Group& ranks) const;

  std::int64_t num_steps() const { return num_steps_; }

 private:
  struct Compared {
    std::string name;
    int index;  // among the parameters, or the buffers
    bool buffer;
    bool split;          // divided between the ranks of an axis
    std::int64_t begin;  // of its elements, among all elements that are compared
    std::int64_t numel;
  };
  void add(std::string name, int index, bool buffer, bool split, std::int64_t numel);
  template <typename Action>
  auto with_values_of(const Compared& tensor, const Range& elements, const Action& action) const;
  std::uint64_t digest_of(const Compared& tensor, const Range& elements) const;
  std::uint64_t digest_of(const Range& compared, bool split) const;
  using PartOf = std::function<Range(std::int64_t numel)>;
  void add_to(SummaryFields& fields, PartOf part_of, std::int64_t step, const Group& ranks) const;
  void write(std::span<double> numbers, const PartOf& part_of) const;
  void check(std::span<const double> sums, std::int64_t step, const Group& ranks) const;
  [[noreturn]] void report(std::int64_t step, int rank) const;
  std::optional<std::int64_t> first_difference_in(const Compared& tensor) const;
  Error passing(std::int64_t step, int rank) const;
  Error experts_differ(std::int64_t step) const;
  static Error tied_differ(std::int64_t step, const std::string& name);
  std::string ranks_text(const std::vector<int>& replicas, int rank) const;

  FlatStore& store_;
  Group replicas_;
  Group experts_;  // the ranks of the expert axis
  std::int64_t num_steps_;
  int num_parts_;                  // the parts of the model on the expert, pipeline and tensor axes
  int part_;                       // this rank's part
  std::vector<Compared> tensors_;  // in registration order, buffers last
  std::int64_t numel_ = 0;
  std::vector<FlatStore::Tied> tied_;
  int num_stages_;
  int pipeline_rank_;
};

}  // namespace trireme::parallel
