# trireme_time_limit(TEST seconds): sets the time limit of a test, four times as long under a sanitizer.
function(trireme_time_limit test seconds)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    math(EXPR seconds "4 * ${seconds}")
  endif()
  set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds})
endfunction()

# trireme_processors(VARIABLE RANKS): how many processors ctest counts for RANKS ranks, which wait for each other half of the time.
function(trireme_processors variable ranks)
  math(EXPR processors "(${ranks} + 1) / 2")
  set(${variable} ${processors} PARENT_SCOPE)
endfunction()

# trireme_mpi_test(NAME SOURCES file... [LIBRARIES target...] RANKS n... [TIMEOUT seconds] [LABELS label...] [ARGS arg...]): one
# program, run by mpirun with each number of ranks as NAME_n, label mpi. Without MPI nothing is built.
function(trireme_mpi_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT TRIREME_HAS_MPI)
    return()
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE ${TEST_LIBRARIES} trireme_fixtures trireme_settings)
  trireme_mpi_runs(${name} ${TEST_UNPARSED_ARGUMENTS})
endfunction()

# trireme_mpi_runs(TARGET RANKS n... [TIMEOUT seconds] [LABELS label...] [ARGS arg...]): the same for a program that exists.
function(trireme_mpi_runs target)
  cmake_parse_arguments(TEST "" "TIMEOUT" "RANKS;LABELS;ARGS" ${ARGN})
  if(NOT TRIREME_HAS_MPI)
    return()
  endif()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  foreach(ranks IN LISTS TEST_RANKS)
    trireme_processors(processors ${ranks})
    add_test(NAME ${target}_${ranks} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${target}>
                                             ${TEST_ARGS})
    set_tests_properties(
      ${target}_${ranks}
      PROPERTIES LABELS "mpi;${TEST_LABELS}"
                 PROCESSORS ${processors}
                 SKIP_RETURN_CODE 77)
    trireme_time_limit(${target}_${ranks} ${TEST_TIMEOUT})
    trireme_mpi_environment(${target}_${ranks})
  endforeach()
endfunction()

# Lets Open MPI run as root, and with more ranks than cores, for which version 5 has another variable. A waiting rank yields its core, as
# mpirun itself chooses for more ranks than cores. Otherwise, or where OpenMP's idle threads spin, most of the processor time of
# these tests would go into waiting.
function(trireme_mpi_environment test)
  set_tests_properties(
    ${test}
    PROPERTIES
      ENVIRONMENT
      "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;\
PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe;OMPI_MCA_mpi_yield_when_idle=1;OMP_WAIT_POLICY=passive")
endfunction()

# trireme_nodes_test(TARGET RANKS NODE [ARG...]): one machine as several nodes, NODE ranks on each, the rest on the last. Named
# TARGET_nodes_RANKS_by_NODE_ARG...
function(trireme_nodes_test target ranks node)
  if(NOT TRIREME_HAS_MPI)
    return()
  endif()
  list(JOIN ARGN _ choices)
  set(test ${target}_nodes_${ranks}_by_${node}_${choices})
  string(REGEX REPLACE "_$" "" test ${test})
  add_test(NAME ${test} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${target}> ${ARGN})
  trireme_processors(processors ${ranks})
  set_tests_properties(${test} PROPERTIES LABELS mpi PROCESSORS ${processors})
  trireme_time_limit(${test} 240)
  trireme_mpi_environment(${test})
  set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT TRIREME_RANKS_PER_NODE=${node})
endfunction()
