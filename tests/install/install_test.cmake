# cmake -D BUILD=... -D SOURCE=... -D VERSION=... -D GENERATOR=... -D FOLDER=... -P install_test.cmake: installs the build BUILD of
# SOURCE below FOLDER, builds its first example and own_*.cpp against the installed library, and runs them. Then checks which
# version is found, and the project inside another one.
file(REMOVE_RECURSE ${FOLDER})
set(example ${SOURCE}/examples/01_first_model.cpp)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# configure(RESULT FOLDER OPTION...): whether the user's project finds the version that it asks for, and where.
function(configure result folder)
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${FOLDER}/${folder} -D CMAKE_BUILD_TYPE=Release
                          -D TRIREME_EXAMPLE=${example} ${ARGN} COMMAND_ECHO STDOUT OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
  if(code EQUAL 0)
    string(REGEX MATCH "trireme found: [^\n]*" found "${output}")
  else()
    set(found "refused: ${output}")
  endif()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# expect(TEXT PATTERN): checks that the text matches the pattern.
function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected ${pattern}, got: ${text}")
  endif()
endfunction()

set(prefix ${FOLDER}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
configure(found build -D CMAKE_PREFIX_PATH=${prefix})
expect("${found}" "trireme found: ${VERSION} in ${prefix}/")
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${FOLDER}/build/example)
run(${FOLDER}/build/own_policy)
run(${FOLDER}/build/own_expression)
foreach(installed IN ITEMS allreduce allreduce_buckets train_gan train_gpt train_lm train_lstm train_resnet train_vit trireme-ckpt trireme-data trireme-evaluate trireme-export trireme-flight trireme-generate trireme-run trireme-schedule trireme-train-tokenizer)
  if(EXISTS ${BUILD}/bin/${installed}) # where they are built at all
    run(${prefix}/bin/${installed} --version)
  endif()
endforeach()

foreach(installed IN ITEMS LICENSE README.md deploy/openmpi deploy/slurm/train.sbatch deploy/kubeflow/train.yaml docs/trireme_run.md
                           examples/01_first_model.cpp examples/gpt/train_gpt.cpp)
  if(NOT EXISTS ${prefix}/share/trireme/${installed})
    message(FATAL_ERROR "${installed} is not installed")
  endif()
endforeach()
run(${prefix}/share/trireme/deploy/openmpi true)

# Checks only the settings of the Debian package, since packing takes minutes.
file(READ ${BUILD}/CPackConfig.cmake package)
foreach(needed IN ITEMS "CPACK_PACKAGE_NAME \"trireme\"" "CPACK_PACKAGE_CONTACT \"[^\"]+\"")
  expect("${package}" "${needed}")
endforeach()

# Only public headers are installed.
file(GLOB_RECURSE installed RELATIVE ${prefix}/include ${prefix}/include/*)
file(GLOB_RECURSE public RELATIVE ${SOURCE}/include ${SOURCE}/include/*)
list(APPEND public trireme/device/build.hpp)
list(SORT public)
list(SORT installed)
if(NOT installed STREQUAL public)
  message(FATAL_ERROR "the installed headers are not those of include/: ${installed}")
endif()

# Beside the next version: each is found by its first two numbers.
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)\\.([0-9]+)$" version ${VERSION})
set(minor ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
math(EXPR number_next "${CMAKE_MATCH_2} + 1")
set(next ${CMAKE_MATCH_1}.${number_next})
set(prefix_next ${FOLDER}/prefix_next)
file(COPY ${prefix}/ DESTINATION ${prefix_next})
file(GLOB_RECURSE version_file ${prefix_next}/*/trireme-config-version.cmake)
file(READ ${version_file} text)
string(REPLACE ${VERSION} ${next}.0 text "${text}")
file(WRITE ${version_file} "${text}")
set(ENV{CMAKE_PREFIX_PATH} ${prefix}:${prefix_next})
configure(found of_this -D TRIREME_WANTED=${minor})
expect("${found}" "trireme found: ${VERSION} in ${prefix}/")
configure(found of_next -D TRIREME_WANTED=${next})
expect("${found}" "trireme found: ${next}.0 in ${prefix_next}/")
set(ENV{CMAKE_PREFIX_PATH} ${prefix})
configure(found of_none -D TRIREME_WANTED=${next})
expect("${found}" "refused: .*compatible with requested version")

unset(ENV{CMAKE_PREFIX_PATH})

# Inside another project: the same target, without our tests and programs, and without our flags.
configure(found within -D TRIREME_SOURCE=${SOURCE} -D TRIREME_CUDA=OFF -D CMAKE_EXPORT_COMPILE_COMMANDS=ON)
expect("${found}" "trireme found: ${VERSION} in ${SOURCE}")
file(READ ${FOLDER}/within/compile_commands.json commands)
foreach(ours IN ITEMS examples/gpt/ tests/core/ benchmarks/ tools/)
  if(commands MATCHES "${SOURCE}/${ours}")
    message(FATAL_ERROR "a project that has the library within it builds ${ours} too")
  endif()
endforeach()
string(REGEX MATCH "\"command\": \"[^\"]*own_policy.cpp\"" command "${commands}")
expect("${command}" "own_policy")
if(command MATCHES "-Werror|-Wall|-O1|visibility")
  message(FATAL_ERROR "a project's own files are compiled with our flags: ${command}")
endif()
