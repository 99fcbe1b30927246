# Runs PROGRAM, decant_conformance, over the golden files in the folder GOLDENS. With MODE
#   check    all files but those of later stages: every case must pass, or be listed as a deliberate difference
#   corrupt  the same files with every expectation altered: every case must fail
#   later    those of later stages, one by one: each must be refused, which fails as soon as one is supported
cmake_minimum_required(VERSION 3.25)

# What a stage that supports one of these takes out of the list, and puts a line into families.cpp.
set(later
  classifier_free_guidance dola)

if(NOT IS_DIRECTORY ${GOLDENS})
  message("SKIPPED: no ${GOLDENS}")
  return()
endif()
file(GLOB files ${GOLDENS}/*.json)
list(TRANSFORM later REPLACE "(.+)" "/\\1.json$" OUTPUT_VARIABLE patterns)
list(JOIN patterns "|" pattern)
set(later_files ${files})
list(FILTER files EXCLUDE REGEX "${pattern}")
list(FILTER later_files INCLUDE REGEX "${pattern}")

# run(CODE WANTED ARGUMENT...): the program must end with CODE and print WANTED, a regular expression.
function(run code wanted)
  execute_process(COMMAND ${PROGRAM} ${ARGN} RESULT_VARIABLE actual OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT actual STREQUAL code OR NOT output MATCHES "${wanted}")
    message(FATAL_ERROR "wanted: exit code ${code} and ${wanted}\nexit code ${actual}, and it printed:\n${output}")
  endif()
  message("${output}")
endfunction()

if(MODE STREQUAL "check")
  run(0 "\ntotal: [1-9][0-9]* passed, 0 failed, [0-9]+ deliberate(, [0-9]+ not applicable)?\n$" ${files})
elseif(MODE STREQUAL "corrupt")
  run(1 "\ntotal: 0 passed, [1-9][0-9]* failed, 0 deliberate(, [0-9]+ not applicable)?\n$" --corrupt ${files})
elseif(MODE STREQUAL "later")
  foreach(file IN LISTS later_files)
    run(2 "unsupported kind: .*\ntotal: 0 passed, 0 failed, 0 deliberate, [1-9][0-9]* not checked\n$" ${file})
  endforeach()
else()
  message(FATAL_ERROR "no such MODE: ${MODE}")
endif()
