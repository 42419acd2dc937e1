# trireme_together(VARIABLE PROGRAM file...): the sources of a test program. Its files of test cases are compiled together, at most 8 at
# a time, each within a namespace of its own (together.cmake); other files are compiled alone. Without TRIREME_TOGETHER all files are.
set(TRIREME_TOGETHER_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/together.cmake)

function(trireme_together variable program)
  set(cases "")
  set(sources "")
  foreach(file IN LISTS ARGN)
    file(STRINGS ${file} case REGEX "^(TEMPLATE_(LIST_)?)?TEST_CASE" LIMIT_COUNT 1)
    if(TRIREME_TOGETHER AND case)
      list(APPEND cases ${file})
    else()
      list(APPEND sources ${file})
    endif()
  endforeach()
  list(LENGTH cases count)
  if(count LESS 2)
    set(${variable} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  math(EXPR units "(${count} + 7) / 8")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE room)
  foreach(unit RANGE 1 ${units})
    # Neighbours in the list, in parts of about equal size.
    math(EXPR begin "(${unit} - 1) * ${count} / ${units}")
    math(EXPR size "${unit} * ${count} / ${units} - ${begin}")
    list(SUBLIST cases ${begin} ${size} part)
    list(TRANSFORM part PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
    list(TRANSFORM part PREPEND ${room}/)
    list(JOIN part "|" part)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/together/${program}_${unit}.cpp)
    add_custom_command(
      OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -D OUT=${source} -D FOLDER=${PROJECT_SOURCE_DIR}/tests -D "FILES=${part}" -P ${TRIREME_TOGETHER_SCRIPT}
      DEPENDS ${files} ${TRIREME_TOGETHER_SCRIPT}
      COMMENT "Joining ${program} ${unit} of ${units}"
      VERBATIM)
    list(APPEND sources ${source})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()
