#include "comm/mpi_collective.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t largest = std::size_t{1} << 30;  // elements of one MPI call; its counts are int

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return MPI_FLOAT;
    case DType::float64: return MPI_DOUBLE;
    case DType::int32: return MPI_INT32_T;
    case DType::int64: return MPI_INT64_T;
    case DType::uint64: return MPI_UINT64_T;
    default: require(false, "no arithmetic for {} in collectives", name_of(dtype));
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::min: return MPI_MIN;
    case ReduceOp::max: return MPI_MAX;
    case ReduceOp::sum:
    case ReduceOp::mean: break;
  }
  return MPI_SUM;
}

template <typename T>
void divide(void* data, std::size_t count, int ranks) {
  auto* values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) values[i] /= static_cast<T>(ranks);
}

// Starts one MPI call for each piece of `count` elements.
template <typename Start>
void in_pieces(std::byte* data, std::size_t count, std::size_t element_bytes, std::vector<MPI_Request>& requests, Start start) {
  for (std::size_t begin = 0; begin < count; begin += largest) {
    MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
    check_mpi(start(data + begin * element_bytes, static_cast<int>(std::min(largest, count - begin)), &request),
              "a nonblocking collective");
  }
}

}  // namespace

WrittenCall write_call(const Call& call) {
  WrittenCall written;
  written.count = call.count;
  written.name_hash = std::hash<std::string_view>{}(call.name);
  written.root = call.root;
  written.kind = call.kind;
  written.op = call.op;
  written.dtype = call.dtype;
  std::copy_n(call.name.data(), std::min(call.name.size(), written.name.size() - 1), written.name.data());
  return written;
}

bool same(const WrittenCall& a, const WrittenCall& b) {
  return a.count == b.count && a.name_hash == b.name_hash && a.root == b.root && a.kind == b.kind && a.op == b.op &&
         a.dtype == b.dtype;
}

std::string describe(const WrittenCall& call, std::uint64_t sequence) {
  return describe(Call{.kind = call.kind,
                       .op = call.op,
                       .dtype = call.dtype,
                       .root = call.root,
                       .count = call.count,
                       .name = call.name.data()},
                  sequence);
}

std::vector<MPI_Request> start_collective(const Call& call, int ranks, MPI_Comm communicator) {
  std::vector<MPI_Request> requests;
  auto* data = static_cast<std::byte*>(call.data);
  const std::size_t bytes = size_of(call.dtype);
  switch (call.kind) {
    case Kind::barrier: break;  // the comparison was one
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      in_pieces(data, call.count, bytes, requests, [&](std::byte* piece, int count, MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, piece, count, mpi_type(call.dtype), mpi_op(call.op), communicator, request);
      });
      break;
    case Kind::all_gather:
      for (int owner = 0; owner < ranks; ++owner) {
        const Range part = part_of(static_cast<std::int64_t>(call.count), owner, ranks);
        in_pieces(data + static_cast<std::size_t>(part.begin) * bytes, static_cast<std::size_t>(part.count()) * bytes, 1,
                  requests, [&](std::byte* piece, int count, MPI_Request* request) {
                    return MPI_Ibcast(piece, count, MPI_BYTE, owner, communicator, request);
                  });
      }
      break;
    case Kind::broadcast:
      in_pieces(data, call.bytes(), 1, requests, [&](std::byte* piece, int count, MPI_Request* request) {
        return MPI_Ibcast(piece, count, MPI_BYTE, call.root, communicator, request);
      });
      break;
  }
  return requests;
}

void finish_collective(const Call& call, int ranks) {
  const bool reduces = call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter;
  if (!reduces || call.op != ReduceOp::mean) return;
  switch (call.dtype) {
    case DType::float32: return divide<float>(call.data, call.count, ranks);
    case DType::float64: return divide<double>(call.data, call.count, ranks);
    case DType::int32: return divide<std::int32_t>(call.data, call.count, ranks);
    case DType::int64: return divide<std::int64_t>(call.data, call.count, ranks);
    case DType::uint64: return divide<std::uint64_t>(call.data, call.count, ranks);
    default: return;
  }
}

}  // namespace trireme::comm
