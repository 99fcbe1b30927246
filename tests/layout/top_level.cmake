# Fails if git tracks anything at the top level of TREE that has no place there.
cmake_minimum_required(VERSION 3.25)

set(allowed include tests bench examples cmake CMakeLists.txt LICENSE README.md CMakePresets.json)

execute_process(COMMAND git -C ${TREE} rev-parse --show-prefix
  RESULT_VARIABLE code OUTPUT_VARIABLE prefix ERROR_VARIABLE complaint OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT code EQUAL 0 OR prefix)
  message("SKIPPED: ${TREE} is not the top of a git checkout. ${complaint}")
  return()
endif()
execute_process(COMMAND git -C ${TREE} ls-files OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "(/[^\n]*)?\n" ";" names "${files}")
list(REMOVE_DUPLICATES names)
list(FILTER names EXCLUDE REGEX "^\\.")
list(REMOVE_ITEM names ${allowed} "")  # the last: what follows the last line
if(names)
  message(FATAL_ERROR "no place at the top level for: ${names}")
endif()
