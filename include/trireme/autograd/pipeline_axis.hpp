#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// The ranks that hold the stages of one model between them, as the model sees them: parallel::model_part makes one of a mesh.
// Stage s lies on rank s % size(). All of it blocks, except send().
class PipelineAxis {
 public:
  PipelineAxis(int rank, int size) : rank_(rank), size_(size) {}
  PipelineAxis(const PipelineAxis&) = delete;
  PipelineAxis& operator=(const PipelineAxis&) = delete;
  virtual ~PipelineAxis() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  virtual std::vector<std::string> gather_texts(std::string_view text, std::string_view name) const = 0;  // by rank

  // Messages between two ranks arrive in order; send() copies `data`.
  template <typename T>
  void send(std::span<const T> data, int to, std::string_view name) const {
    send_bytes(std::as_bytes(data), to, name);
  }
  template <typename T>
  void receive(std::span<T> data, int from, std::string_view name) const {
    receive_bytes(std::as_writable_bytes(data), from, name);
  }
  template <typename T>
  void broadcast(std::span<T> data, int root, std::string_view name) const {
    broadcast_bytes(std::as_writable_bytes(data), root, name);
  }

 private:
  virtual void send_bytes(std::span<const std::byte> data, int to, std::string_view name) const = 0;
  virtual void receive_bytes(std::span<std::byte> data, int from, std::string_view name) const = 0;
  virtual void broadcast_bytes(std::span<std::byte> data, int root, std::string_view name) const = 0;

  int rank_;
  int size_;
};

}  // namespace trireme
