# Everything comes from the system: nothing is downloaded at configure time.
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(dnnl CONFIG REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)

set(TRIREME_HAS_MPI OFF)
if(NOT TRIREME_MPI STREQUAL "OFF")
  enable_language(C) # FindMPI looks for the C interface
  find_package(MPI COMPONENTS C)
  if(MPI_C_FOUND)
    set(TRIREME_HAS_MPI ON)
  elseif(TRIREME_MPI STREQUAL "ON")
    message(FATAL_ERROR "TRIREME_MPI=ON, but MPI was not found; install libopenmpi-dev or set TRIREME_MPI=OFF")
  else()
    message(STATUS "MPI was not found: only ranks as threads; install libopenmpi-dev for mpirun")
  endif()
endif()
