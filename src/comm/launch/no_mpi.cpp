#include "comm/launch/launch.hpp"

namespace trireme::comm {

int launch_mpi(const LaunchOptions&, const std::function<int(Group)>&) {
  throw Error({.code = ErrorCode::not_available,
               .message = "mpirun started this program, but this build of trireme has no MPI backend",
               .hint = "use the thread backend, or build with -DTRIREME_MPI=ON"});
}

}  // namespace trireme::comm
