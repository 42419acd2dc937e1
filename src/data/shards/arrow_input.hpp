#pragma once

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "data/sources/ranged_file.hpp"

namespace trireme::data {

// Memory of a file.
class HeldBuffer : public arrow::Buffer {
 public:
  HeldBuffer(std::shared_ptr<const std::byte> memory, std::int64_t bytes)
      : Buffer(reinterpret_cast<const std::uint8_t*>(memory.get()), bytes), memory_(std::move(memory)) {}

 private:
  std::shared_ptr<const std::byte> memory_;
};

// A file as Arrow reads it. Exceptions do not pass through Arrow, but wait for rethrow().
class ArrowInput : public arrow::io::RandomAccessFile {
 public:
  explicit ArrowInput(const Location& path) : file_(path) {}

  arrow::Result<std::int64_t> GetSize() override { return static_cast<std::int64_t>(file_.size()); }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Seek(std::int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Status Close() override {
    is_closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return is_closed_; }

  using RandomAccessFile::ReadAt;
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t count) override {
    if (position < 0 || count < 0 || std::cmp_greater(position, file_.size()))
      return arrow::Status::IOError("bytes outside of the file");
    const auto rest = static_cast<std::int64_t>(file_.size()) - position;
    count = std::min(count, rest);
    try {
      return std::make_shared<HeldBuffer>(file_.range(static_cast<std::uint64_t>(position), static_cast<std::size_t>(count)),
                                          count);
    } catch (...) {
      failure_ = std::current_exception();
      return arrow::Status::IOError("the file cannot be read");
    }
  }
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, void* into) override {
    ARROW_ASSIGN_OR_RAISE(const auto read, ReadAt(position, count));
    std::copy_n(read->data(), read->size(), static_cast<std::uint8_t*>(into));
    return read->size();
  }
  arrow::Result<std::int64_t> Read(std::int64_t count, void* into) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t read, ReadAt(position_, count, into));
    position_ += read;
    return read;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(auto read, ReadAt(position_, count));
    position_ += read->size();
    return read;
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  RangedFile file_;
  std::int64_t position_ = 0;
  bool is_closed_ = false;
  std::exception_ptr failure_ = nullptr;
};

}  // namespace trireme::data
