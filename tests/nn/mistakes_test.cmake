# Compiles SOURCE, without code generation, with COMPILER and FLAGS, and compares the first error with the first line of SOURCE:
#   // wanted: a regular expression of the first error
# The compiler may add more lines of error; the first one has to tell the user what to write.
file(STRINGS ${SOURCE} first_line LIMIT_COUNT 1)
string(REGEX REPLACE "^// wanted: " "" wanted "${first_line}")
execute_process(COMMAND ${COMPILER} ${FLAGS} -fsyntax-only ${SOURCE} RESULT_VARIABLE result OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
if(wanted MATCHES "^nothing")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} should compile, but:\n${output}")
  endif()
  return()
endif()
string(REGEX MATCH "error: [^\n]*" error "${output}")
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but should not")
elseif(NOT error MATCHES "${wanted}")
  message(FATAL_ERROR "the first error of ${SOURCE} is\n  ${error}\nand should be\n  ${wanted}\nof\n${output}")
endif()
