#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "trireme/core/dtype.hpp"
#include "trireme/core/range.hpp"

namespace trireme {

// The ranks that hold the layers of one model between them, as layers see them: parallel::model_part makes one of a mesh. All
// ranks start its collectives in the same order, with equally many elements.
class TensorAxis {
 public:
  // A collective under way; its data are complete after wait(). Destroying it waits too.
  class [[nodiscard]] Transfer {
   public:
    Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    virtual ~Transfer() = default;
    virtual bool done() = 0;  // advances, never blocks
    virtual void wait() = 0;
  };

  TensorAxis(int rank, int size, bool sequence_parallel) : rank_(rank), size_(size), sequence_parallel_(sequence_parallel) {}
  TensorAxis(const TensorAxis&) = delete;
  TensorAxis& operator=(const TensorAxis&) = delete;
  virtual ~TensorAxis() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Between split layers every rank has its own rows [rows / size, width] of what they pass on, not all of them (Korthikanti et
  // al. 2022, arXiv 2205.05198).
  bool sequence_parallel() const { return sequence_parallel_; }

  // Whether ranks can have equally many of the rows: parts that begin where those of the collectives do, at 16 elements.
  bool divides_rows(std::int64_t rows, std::int64_t width) const { return rows % size_ == 0 && rows / size_ * width % 16 == 0; }

  // This rank's part of `count` things: contiguous, in rank order, as even as can be.
  Range part(std::int64_t count) const;

  template <typename T>
  std::unique_ptr<Transfer> all_reduce(std::span<T> data, std::string_view name) const {
    return start(Collective::all_reduce, data.data(), data.size(), dtype_of<T>, name);
  }
  // Equal parts of `data` in rank order: afterwards this rank's holds the sum, the others are undefined.
  template <typename T>
  std::unique_ptr<Transfer> reduce_scatter(std::span<T> data, std::string_view name) const {
    return start(Collective::reduce_scatter, data.data(), data.size(), dtype_of<T>, name);
  }
  // Equal parts of `data` in rank order: every rank gives its own to all.
  template <typename T>
  std::unique_ptr<Transfer> all_gather(std::span<T> data, std::string_view name) const {
    return start(Collective::all_gather, data.data(), data.size(), dtype_of<T>, name);
  }

 protected:
  enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather };

 private:
  virtual std::unique_ptr<Transfer> start(Collective collective, void* data, std::size_t count, DType dtype,
                                          std::string_view name) const = 0;

  int rank_;
  int size_;
  bool sequence_parallel_;
};

}  // namespace trireme
