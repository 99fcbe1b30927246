# Lists the test cases of PROGRAM and writes OUTPUT, which ctest reads: one entry a test case, named PREFIX.<its name>,
# labelled long if it is tagged [long] and fast otherwise.
#
# Catch2's own catch_discover_tests is not used: that of 2.13 warns of every program without a [long] case, and takes
# a program with 256 cases for one without any.
cmake_minimum_required(VERSION 3.25)

set(long_spec "[long]")
set(long_timeout 1800)
set(fast_spec "~[long]")
set(fast_timeout 300)
execute_process(COMMAND ${PROGRAM} --libidentify OUTPUT_VARIABLE identity)
if(identity MATCHES "version: *2")
  set(list_names --list-test-names-only)
  set(warn_of_none "--warn NoTests")
else()
  set(list_names --list-tests --verbosity quiet)
  set(warn_of_none "")
endif()

set(entries "")
foreach(label IN ITEMS fast long)
  # 2.13 returns the number of cases as its exit code, so that tells nothing; a crash gives text, or no output at all.
  execute_process(COMMAND ${PROGRAM} ${${label}_spec} ${list_names}
    OUTPUT_VARIABLE names ERROR_VARIABLE complaint RESULT_VARIABLE code)
  if(NOT code MATCHES "^[0-9]+$" OR complaint)
    message(FATAL_ERROR "${PROGRAM} cannot list its tests: ${code}\n${complaint}")
  endif()
  # Without list operations: test names may hold brackets and semicolons.
  while(names MATCHES "^([^\n]*)\n(.*)$")
    set(name "${CMAKE_MATCH_1}")
    set(names "${CMAKE_MATCH_2}")
    if(name STREQUAL "")
      continue()
    endif()
    string(REGEX REPLACE "([][,\\\\])" "\\\\\\1" pattern "${name}")
    string(APPEND entries
      "add_test([==[${PREFIX}.${name}]==] [==[${PROGRAM}]==] [==[${pattern}]==] ${warn_of_none})\n"
      "set_tests_properties([==[${PREFIX}.${name}]==] PROPERTIES LABELS ${label} TIMEOUT ${${label}_timeout}"
      " SKIP_REGULAR_EXPRESSION \"SKIPPED: \")\n")
  endwhile()
endforeach()
file(WRITE ${OUTPUT} "${entries}")
