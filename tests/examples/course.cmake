# The programs of the course, on the numbers of ranks that each is for; they print the same results for any number.
set(course_folder ${CMAKE_CURRENT_BINARY_DIR}/course)

# trireme_course_test(NAME RANKS count... PRINTS regex [ARGS arg...]): runs in the repository's folder, as users do.
function(trireme_course_test name)
  cmake_parse_arguments(TEST "" "PRINTS" "RANKS;ARGS" ${ARGN})
  trireme_mpi_runs(${name} RANKS ${TEST_RANKS} TIMEOUT 60 ARGS ${TEST_ARGS})
  foreach(ranks IN LISTS TEST_RANKS)
    set_tests_properties(${name}_${ranks} PROPERTIES WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PASS_REGULAR_EXPRESSION "${TEST_PRINTS}")
  endforeach()
endfunction()

add_test(NAME course_begins COMMAND ${CMAKE_COMMAND} -E rm -rf ${course_folder})
set_tests_properties(course_begins PROPERTIES LABELS mpi FIXTURES_SETUP course)

trireme_course_test(01_first_model RANKS 1 2 4 PRINTS "test_accuracy 0\\.9")
foreach(ranks IN ITEMS 1 2 4)
  trireme_course_test(02_your_data RANKS ${ranks} PRINTS "test_accuracy 0\\.95.*loss 1\\.53[0-9]+ -> 0\\.07" ARGS --checkpoint-dir
                      ${course_folder}/your_data_${ranks})
  set_tests_properties(02_your_data_${ranks} PROPERTIES FIXTURES_REQUIRED course)
endforeach()
trireme_course_test(04_own_layers RANKS 1 2 PRINTS "test_accuracy 0\\.9")
# The same bits as 02.
trireme_course_test(06_loop_by_hand RANKS 1 PRINTS "loss 0\\.07[0-9]+  test_accuracy 0\\.95" ARGS ${course_folder}/by_hand)
trireme_course_test(07_own_transformer RANKS 1 2 PRINTS "validation_loss 2\\.9" ARGS --threads 1)
trireme_course_test(07_own_transformer RANKS 4 PRINTS "validation_loss 2\\.9" ARGS --pipeline-parallel 2 --tensor-parallel 2)
trireme_course_test(08_own_operation_and_optimizer RANKS 1 2 PRINTS "test_accuracy 0\\.9")
trireme_course_test(09_communication_hook RANKS 1 2 PRINTS "loss 1\\.[0-9]+ -> 0\\.[34]")
trireme_course_test(10_two_models RANKS 1 2 PRINTS "mean_radius (0\\.9|1\\.0)")
trireme_course_test(11_transfer_learning RANKS 1 2 PRINTS "with a frozen backbone: test_accuracy 0\\.[89]")
trireme_course_test(12_inside_mpi_program RANKS 1 2 PRINTS "the surrogate is ready, loss below 0\\.01")
set_tests_properties(06_loop_by_hand_1 PROPERTIES FIXTURES_REQUIRED course)

# The second run continues from the checkpoint of the first, on more ranks; then another program reads it.
set(kept ${course_folder}/checkpoints)
trireme_course_test(05_checkpoints RANKS 2 PRINTS "best_validation_loss 0\\." ARGS --checkpoint-dir ${kept} --epochs 2)
add_test(NAME 05_checkpoints_again
         COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4 $<TARGET_FILE:05_checkpoints> --checkpoint-dir ${kept})
trireme_mpi_environment(05_checkpoints_again)
set_tests_properties(
  05_checkpoints_again
  PROPERTIES LABELS mpi
             TIMEOUT 60
             PROCESSORS 2
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
             PASS_REGULAR_EXPRESSION "resumed after step.*best_validation_loss 0\\.[01]")
trireme_course_test(13_read_a_checkpoint RANKS 1 2 PRINTS "model.output.bias is .*test_accuracy 0\\.9" ARGS --checkpoint-dir ${kept})
set_tests_properties(05_checkpoints_2 PROPERTIES FIXTURES_REQUIRED course FIXTURES_SETUP course_begun)
set_tests_properties(05_checkpoints_again PROPERTIES FIXTURES_REQUIRED "course;course_begun" FIXTURES_SETUP course_trained)
set_tests_properties(13_read_a_checkpoint_1 13_read_a_checkpoint_2 PROPERTIES FIXTURES_REQUIRED "course;course_trained" RUN_SERIAL ON)

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND TRIREME_HAS_PNG)
  add_test(NAME course_images COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/write_images ${course_folder}/images)
  set_tests_properties(course_images PROPERTIES LABELS mpi FIXTURES_REQUIRED course FIXTURES_SETUP course_images)
  trireme_course_test(03_images RANKS 1 2 PRINTS "test_accuracy (0\\.9|1\\.0)" ARGS --images ${course_folder}/images)
  set_tests_properties(03_images_1 03_images_2 PROPERTIES FIXTURES_REQUIRED "course;course_images")
endif()
