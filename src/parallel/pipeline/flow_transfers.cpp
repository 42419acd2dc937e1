#include "parallel/pipeline/flow_transfers.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::parallel {

FlowTransfers::FlowTransfers(Group ranks, int num_stages, const PlaneDevice& device)
    : ranks_(std::move(ranks)), num_stages_(num_stages), device_(device), links_(static_cast<std::size_t>(num_stages)) {}

void FlowTransfers::begin_step(int micro_batches) {
  micro_batches_ = micro_batches;
  for (Link& link : links_) {
    if (!link.layout.empty()) link.expected = link.alike ? link.layout : std::vector<std::int64_t>();
    link.layout.clear();
    link.alike = true;
  }
}

void FlowTransfers::note(Link& link, const std::vector<std::int64_t>& layout) {
  if (link.layout.empty()) link.layout = layout;
  link.alike = link.alike && link.layout == layout;
}

void FlowTransfers::expect(int stage, const std::string& name, Arrival& arrival) {
  const int from = rank_of(stage - 1);
  arrival.pending.push_back(
      ranks_.receive(std::span(arrival.announced), from, tag(Way::announcement, stage), "announcement of the " + name));
  arrival.expected = nn::allocate_parts(links_[static_cast<std::size_t>(stage)].expected, device_.memory());
  for (const nn::FlowPart& part : arrival.expected) {
    arrival.pending.push_back(nn::receive_part(ranks_, part, from, tag(Way::expected, stage), name));
  }
}

nn::PackedFlow FlowTransfers::take(int stage, const std::string& name, Arrival& arrival) {
  Link& link = links_[static_cast<std::size_t>(stage)];
  arrival.pending.front().wait_on_host();
  if (arrival.announced[2] != micro_batches_) {
    throw Error({.code = ErrorCode::rank_mismatch,
                 .message = fmt::format("rank {} of the pipeline has {} micro-batches in this step, rank {} has {}",
                                        rank_of(stage - 1), arrival.announced[2], ranks_.rank(), micro_batches_),
                 .rank = ranks_.rank(),
                 .name = name,
                 .hint = "give all ranks of a pipeline the same batches"});
  }
  for (Pending& pending : arrival.pending) pending.wait_on_host();
  nn::PackedFlow flow{.layout = link.expected, .parts = std::move(arrival.expected)};
  if (arrival.announced[0] == 0) {
    const int from = rank_of(stage - 1);
    flow.layout.resize(static_cast<std::size_t>(arrival.announced[1]));
    ranks_.receive(std::span(flow.layout), from, tag(Way::other, stage), "layout of the " + name).wait_on_host();
    flow.parts = nn::allocate_parts(flow.layout, device_.memory());
    for (const nn::FlowPart& part : flow.parts) {
      nn::receive_part(ranks_, part, from, tag(Way::other, stage), name).wait_on_host();
    }
  }
  arrival = {};
  note(link, flow.layout);
  return flow;
}

void FlowTransfers::send(int stage, const std::string& name, const nn::PackedFlow& flow) {
  Link& link = links_[static_cast<std::size_t>(stage)];
  const int to = rank_of(stage);
  const bool as_expected = flow.layout == link.expected;
  const std::vector<std::int64_t> announced{as_expected ? 1 : 0, std::ssize(flow.layout), micro_batches_};
  ranks_.send(std::span<const std::int64_t>(announced), to, tag(Way::announcement, stage), "announcement of the " + name);
  const std::vector<nn::FlowPart> expected = as_expected ? flow.parts : nn::allocate_parts(link.expected, device_.memory());
  for (const nn::FlowPart& part : expected) nn::send_part(ranks_, part, to, tag(Way::expected, stage), name);
  if (!as_expected) {
    ranks_.send(std::span<const std::int64_t>(flow.layout), to, tag(Way::other, stage), "layout of the " + name);
    for (const nn::FlowPart& part : flow.parts) nn::send_part(ranks_, part, to, tag(Way::other, stage), name);
  }
  note(link, flow.layout);
}

std::vector<Pending> FlowTransfers::expect_gradients(int stage, const std::string& name, std::vector<std::int64_t>& numbers,
                                                     const std::vector<nn::FlowPart>& parts) const {
  std::vector<Pending> pending;
  pending.push_back(ranks_.receive(std::span(numbers), rank_of(stage + 1), tag(Way::gradient, stage), name));
  for (const nn::FlowPart& part : parts) {
    pending.push_back(nn::receive_part(ranks_, part, rank_of(stage + 1), tag(Way::gradient, stage), name));
  }
  return pending;
}

void FlowTransfers::send_gradients(int stage, const std::string& name, const std::vector<std::int64_t>& numbers,
                                   const std::vector<nn::FlowPart>& parts) const {
  ranks_.send(std::span<const std::int64_t>(numbers), rank_of(stage), tag(Way::gradient, stage), name);
  for (const nn::FlowPart& part : parts) nn::send_part(ranks_, part, rank_of(stage), tag(Way::gradient, stage), name);
}

}  // namespace trireme::parallel
