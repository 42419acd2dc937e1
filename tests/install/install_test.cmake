# cmake -D BUILD=... -D GENERATOR=... -D FOLDER=... -D EXAMPLE=... -P install_test.cmake: installs the build BUILD below FOLDER, builds the
# source file EXAMPLE and own_policy.cpp against what was installed, and runs them.
file(REMOVE_RECURSE ${FOLDER})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${FOLDER}/build -D CMAKE_BUILD_TYPE=Release
    -D CMAKE_PREFIX_PATH=${FOLDER}/prefix -D TRIREME_EXAMPLE=${EXAMPLE})
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${FOLDER}/build/example)
run(${FOLDER}/build/own_policy)
foreach(installed IN ITEMS train_gan train_gpt train_lstm train_resnet trireme-ckpt trireme-flight trireme-run trireme-schedule)
  if(EXISTS ${BUILD}/bin/${installed}) # where they are built at all
    run(${FOLDER}/prefix/bin/${installed} --version)
  endif()
endforeach()
