#include "comm/mpi/mpi_calls.hpp"

#include <fmt/format.h>

#include <array>

namespace trireme::comm {

Error mpi_error(int result, std::string_view call) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  return Error({.code = ErrorCode::internal, .message = fmt::format("MPI: {}", text.data()), .operation = std::string(call)});
}

void check_mpi(int result, std::string_view call) {
  if (result != MPI_SUCCESS) throw mpi_error(result, call);
}

int rank_in(MPI_Comm communicator) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  return rank;
}

int size_of(MPI_Comm communicator) {
  int size = 0;
  check_mpi(MPI_Comm_size(communicator, &size), "MPI_Comm_size");
  return size;
}

std::vector<std::string> gather_texts(MPI_Comm communicator, std::string_view text) {
  const auto ranks = static_cast<std::size_t>(size_of(communicator));
  const int size = static_cast<int>(text.size());
  std::vector<int> sizes(ranks);
  check_mpi(MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, communicator), "MPI_Allgather");
  std::vector<int> offsets(ranks);
  for (std::size_t rank = 1; rank < ranks; ++rank) offsets[rank] = offsets[rank - 1] + sizes[rank - 1];
  std::string all(static_cast<std::size_t>(offsets.back() + sizes.back()), '\0');
  check_mpi(MPI_Allgatherv(text.data(), size, MPI_CHAR, all.data(), sizes.data(), offsets.data(), MPI_CHAR, communicator),
            "MPI_Allgatherv");
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts.push_back(all.substr(static_cast<std::size_t>(offsets[rank]), static_cast<std::size_t>(sizes[rank])));
  }
  return texts;
}

}  // namespace trireme::comm
