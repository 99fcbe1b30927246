# clang-format and clang-tidy have nothing to say about decant's own code. Both are version 19: others lay out
# requires-clauses differently.
cmake_minimum_required(VERSION 3.25)

find_program(FORMAT clang-format-19)
find_program(TIDY clang-tidy-19)
if(NOT FORMAT OR NOT TIDY)
  message("SKIPPED: clang-format-19 and clang-tidy-19 are not both here")
  return()
endif()

file(GLOB_RECURSE files ${TREE}/include/*.hpp ${TREE}/tests/*.hpp ${TREE}/tests/*.cpp ${TREE}/bench/*.hpp
     ${TREE}/bench/*.cpp ${TREE}/examples/*.hpp ${TREE}/examples/*.cpp)
list(FILTER files EXCLUDE REGEX "/tests/compile_fail/")  # their expected messages stand in long comments
execute_process(COMMAND ${FORMAT} --dry-run -Werror ${files} RESULT_VARIABLE code ERROR_VARIABLE text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "clang-format-19 would change something:\n${text}")
endif()

file(WRITE ${WORK_DIR}/everything.cpp "#include <decant/decant.hpp>\n#include <decant/testing.hpp>\n")
execute_process(
  COMMAND ${TIDY} -quiet --config-file=${TREE}/.clang-tidy --header-filter=include/decant/ -warnings-as-errors=*
          ${WORK_DIR}/everything.cpp -- -std=c++20 -I${TREE}/include -isystem ${EIGEN}
  RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE more)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "clang-tidy-19 complains:\n${text}")
endif()
