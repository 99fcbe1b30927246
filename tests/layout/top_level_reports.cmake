# Makes a git checkout with one file too many at its top level, which top_level.cmake must report.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${WORK_DIR})
file(WRITE ${WORK_DIR}/README.md "")
file(WRITE ${WORK_DIR}/.hidden "")
file(WRITE ${WORK_DIR}/tests/notes.txt "")
file(WRITE ${WORK_DIR}/untracked.txt "")

function(check wanted_failure)
  execute_process(COMMAND git -C ${WORK_DIR} add ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -D TREE=${WORK_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/top_level.cmake
    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(wanted_failure STREQUAL "")
    if(NOT code EQUAL 0 OR output)
      message(FATAL_ERROR "a good tree was refused:\n${output}")
    endif()
  elseif(code EQUAL 0 OR NOT output MATCHES "${wanted_failure}")
    message(FATAL_ERROR "this was to be reported: ${wanted_failure}\n${output}")
  endif()
endfunction()

execute_process(COMMAND git init --quiet ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)
check("" README.md .hidden tests/notes.txt)
file(WRITE ${WORK_DIR}/attic/old.txt "")
check("no place at the top level for: attic" attic/old.txt)
