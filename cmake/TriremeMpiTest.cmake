# trireme_mpi_test(NAME RANKS n... SOURCES file... [TIMEOUT seconds] [ARGS arg...]): one program, run by mpirun with each
# number of ranks as NAME_n, label mpi. Without MPI nothing is built.
function(trireme_mpi_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "RANKS;SOURCES;ARGS" ${ARGN})
  if(NOT TRIREME_HAS_MPI)
    return()
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE trireme::trireme trireme_settings)
  foreach(ranks IN LISTS TEST_RANKS)
    add_test(NAME ${name}_${ranks} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${name}>
                                           ${TEST_ARGS})
    trireme_mpi_test_properties(${name}_${ranks} ${ranks} ${TEST_TIMEOUT})
  endforeach()
endfunction()

# Open MPI as root, with more ranks than cores, yielding while it waits.
function(trireme_mpi_test_properties test ranks timeout)
  set_tests_properties(
    ${test}
    PROPERTIES LABELS mpi
               TIMEOUT ${timeout}
               PROCESSORS ${ranks}
               SKIP_RETURN_CODE 77
               ENVIRONMENT
               "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_mpi_yield_when_idle=1")
endfunction()
