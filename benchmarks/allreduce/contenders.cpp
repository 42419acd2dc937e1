#include "contenders.hpp"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "comm/reduce.hpp"
#include "trireme/device/memory.hpp"

namespace {

using trireme::Group;

class OurGroup final : public Contender {
 public:
  OurGroup(const Group& world, std::size_t count)
      : world_(world), storage_(world.memory(), count * sizeof(float)), buffer_(static_cast<float*>(storage_.data()), count) {}
  std::string_view name() const override { return "group"; }
  std::span<float> buffer() override { return buffer_; }
  void sum(std::size_t count) override { world_.all_reduce(buffer_.first(count)).wait_on_host(); }

 private:
  Group world_;
  trireme::device::Storage storage_;
  std::span<float> buffer_;
};

class Mpi final : public Contender {
 public:
  explicit Mpi(std::size_t count) : buffer_(count) {}
  std::string_view name() const override { return "mpi"; }
  std::span<float> buffer() override { return buffer_; }
  void sum(std::size_t count) override {
    MPI_Allreduce(MPI_IN_PLACE, buffer_.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }

 private:
  std::vector<float> buffer_;
};

class Limit final : public Contender {
 public:
  Limit(const Group& world, std::size_t count)
      : world_(world), from_(static_cast<std::size_t>(world.size())), to_(from_.size()) {
    // Blocks a power of two apart would evict each other from the first-level cache of some processors.
    const auto bytes = static_cast<MPI_Aint>(count * sizeof(float) + 5 * 4096);
    void* mine = nullptr;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window_);
    buffer_ = {static_cast<float*>(mine), count};
    for (int rank = 0; rank < world.size(); ++rank) {
      MPI_Aint size = 0;
      int unit = 0;
      void* block = nullptr;
      MPI_Win_shared_query(window_, rank, &size, &unit, &block);
      blocks_.push_back(static_cast<float*>(block));
    }
  }
  ~Limit() override { MPI_Win_free(&window_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

  std::string_view name() const override { return "limit"; }
  std::span<float> buffer() override { return buffer_; }
  void sum(std::size_t count) override {
    const trireme::Range part = world_.part(static_cast<std::int64_t>(count), world_.rank());
    for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
      from_[rank] = to_[rank] = reinterpret_cast<std::byte*>(blocks_[rank] + part.begin);
    }
    trireme::comm::reduce(trireme::ReduceOp::sum, trireme::DType::float32, from_, to_, static_cast<std::size_t>(part.count()));
  }

 private:
  Group world_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<float> buffer_;
  std::vector<float*> blocks_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
};

}  // namespace

std::vector<std::unique_ptr<Contender>> make_contenders(const Group& world, std::size_t count) {
  std::vector<std::unique_ptr<Contender>> contenders;
  contenders.push_back(std::make_unique<OurGroup>(world, count));
  contenders.push_back(std::make_unique<Mpi>(count));
  contenders.push_back(std::make_unique<Limit>(world, count));
  return contenders;
}
