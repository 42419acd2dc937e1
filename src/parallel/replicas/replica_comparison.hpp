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

// Whether replicas, the ranks of an expert axis beside their experts, and the stages that hold a tied parameter still hold the
// same values. In each step a part of them, a K-th, is digested and the digests are compared in the step's summary; where
// replicas differ, all ranks look for the first element that does.
class ReplicaComparison {
 public:
  ReplicaComparison(FlatStore& store, const ProcessMesh& mesh, int num_steps, bool buffers);

  // Compares a part of the values, in num_steps() steps all of them, or all at once: by numbers that add up to zeros over the
  // ranks of the mesh, whose group is `ranks`, where replicas agree. Where they do not, reading the fields throws the same
  // Error{diverged} on all of these.
  void add_part_to(SummaryFields& fields, std::int64_t steps_before, std::int64_t step, const Group& ranks) const;
  void add_all_to(SummaryFields& fields, std::int64_t step, const Group& ranks) const;

  std::int64_t num_steps() const { return num_steps_; }

 private:
  struct Compared {
    std::string name;
    int index;  // among the parameters, or the buffers
    bool buffer;
    bool split;          // between the ranks of an axis
    std::int64_t begin;  // among all elements that are compared
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
  int num_parts_;                  // of the model, which is divided on the expert, pipeline and tensor axes
  int part_;                       // the one that lies here
  std::vector<Compared> tensors_;  // in registration order, buffers last
  std::int64_t numel_ = 0;
  std::vector<FlatStore::Tied> tied_;
  int num_stages_;
  int pipeline_rank_;
};

}  // namespace trireme::parallel
