# Mutation test: would the tests notice? LIST names one-line changes of headers, each with the tests that must fail
# under it. This script makes every change in turn, compiles those tests alone and runs them.
#
#   cmake -D LIST=tests/mutants.txt -D COMPILER=g++ -D WORK=/tmp/mutants [...] -P tests/mutation/run.cmake
#
# LIST        blocks apart by blank lines, `#` begins a comment line; in a block, each on a line of its own:
#               file: a header, as it is included, without the root's own folder (ROOM)
#               line: text that stands exactly once in it
#               becomes: what is put in its place; may be missing: nothing
#               kills: tests that must fail, each without `.test.cpp`
#               case: may be given where a test is slow: only its test cases that match, as Catch2 reads names
#               why: what would go wrong
# COMPILER    g++ or clang++; FLAGS: more options for it
# WORK        a folder for what is built; it is emptied first
# INCLUDE     the folder that the headers are included from, and ROOM the folder in it that files are named from;
#             by default this project's
# TESTS       the folder that tests are named from; by default this project's
# SYSTEM      include folders of the libraries that tests use
# SUPPORT     units of this project's tests, without `.cpp`, that are compiled once and linked with each; by default
#             Catch2's main function and an operator new that counts
# LINK        what else each test is linked with
# ONLY        a regular expression: only mutants of files that match
# JOBS        how many at a time; by default 2
#
# First every test named must pass without a change. A mutant is killed when each of its tests fails (or does not end
# in time). It is an error of the list, not a kill, when the text is not there exactly once, or what comes out does not
# compile. Anything but all killed makes the script fail. No test sees the shared data: what kills must stand alone.
cmake_minimum_required(VERSION 3.25)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tests_of_project)
cmake_path(GET tests_of_project PARENT_PATH project)
foreach(default IN ITEMS "INCLUDE=${project}/include" ROOM=decant "TESTS=${tests_of_project}" FLAGS= SYSTEM=
                         "SUPPORT=support/main;mutation/allocations" LINK= ONLY=. JOBS=2 PART=)
  string(REGEX MATCH "^([A-Z]+)=(.*)$" default "${default}")
  if(NOT DEFINED ${CMAKE_MATCH_1})
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endif()
endforeach()
cmake_path(ABSOLUTE_PATH LIST NORMALIZE)
cmake_path(ABSOLUTE_PATH WORK NORMALIZE)

# ---- reading the list. C++ is full of what CMake's lists take for their own, so no list ever holds any of it.

set(count 0)
set(tests)
macro(begin_block)
  math(EXPR count "${count} + 1")
  foreach(key IN ITEMS file line becomes kills case why)
    set(${key}_${count} "")
  endforeach()
endmacro()

# Each mutant's values go to file_N, line_N, becomes_N, kills_N (a list), case_N and why_N.
file(READ ${LIST} rest)
string(APPEND rest "\n")
set(open FALSE)
set(number 0)
while(NOT rest STREQUAL "")
  string(FIND "${rest}" "\n" end)
  string(SUBSTRING "${rest}" 0 ${end} text)
  math(EXPR end "${end} + 1")
  string(SUBSTRING "${rest}" ${end} -1 rest)
  math(EXPR number "${number} + 1")
  if(text STREQUAL "")
    set(open FALSE)
  elseif(text MATCHES "^#")
    continue()
  elseif(text MATCHES "^(file|line|becomes|kills|case|why): (.*)$")
    if(NOT open)
      begin_block()
      set(open TRUE)
    endif()
    set(${CMAKE_MATCH_1}_${count} "${CMAKE_MATCH_2}")
  else()
    message(FATAL_ERROR "${LIST}:${number}: neither a comment nor one of the keys: ${text}")
  endif()
endwhile()
foreach(n RANGE 1 ${count})
  foreach(key IN ITEMS file line kills why)
    if(count EQUAL 0 OR "${${key}_${n}}" STREQUAL "")
      message(FATAL_ERROR "${LIST}: mutant ${n} has no ${key}")
    endif()
  endforeach()
  string(REPLACE " " ";" kills_${n} "${kills_${n}}")
  if(file_${n} MATCHES "${ONLY}")
    foreach(test IN LISTS kills_${n})
      list(APPEND tests "${test} ${case_${n}}")
    endforeach()
  endif()
endforeach()
list(REMOVE_DUPLICATES tests)

# ---- building and running one test

set(command ${COMPILER} -std=c++20 -O0 -g0 ${FLAGS}
            "-DDECANT_SHARED_DIR=\"absent\"" "-DDECANT_SOURCE_DIR=\"${project}\""
            -include ${tests_of_project}/support/assertion.hpp)
set(includes -I${INCLUDE} -I${TESTS})
foreach(folder IN LISTS SYSTEM)
  list(APPEND includes -idirafter ${folder})  # and not -isystem, which must not name /usr/include
endforeach()

# A test that passes may not be so slow that a busy machine would take it for one that does not end.
set(seconds_allowed 60)

# build_and_run(TEST CASE NAME OUT [OPTION...]): OUT becomes passed, failed or broken; `output` what was said.
function(build_and_run test case name out)
  set(program ${WORK}/${name}.test)
  execute_process(COMMAND ${command} ${ARGN} ${includes} ${TESTS}/${test}.test.cpp ${LINK} -o ${program}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    set(${out} broken PARENT_SCOPE)
  else()
    set(arguments)
    if(NOT case STREQUAL "")
      set(arguments -w NoTests "${case}")
    endif()
    execute_process(COMMAND ${program} ${arguments} WORKING_DIRECTORY ${WORK} TIMEOUT ${seconds_allowed}
                    RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(code EQUAL 0)
      set(${out} passed PARENT_SCOPE)
    else()
      set(${out} failed PARENT_SCOPE)
    endif()
  endif()
  file(REMOVE ${program})
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Puts the changed header of mutant N alone into a folder, whose path becomes `overlay`; or says what is wrong: `fault`.
function(make_mutant n)
  set(fault "" PARENT_SCOPE)
  set(header ${INCLUDE}/${ROOM}/${file_${n}})
  if(NOT EXISTS ${header})
    set(fault "there is no such file" PARENT_SCOPE)
    return()
  endif()
  file(READ ${header} text)
  string(FIND "${text}" "${line_${n}}" first)
  string(FIND "${text}" "${line_${n}}" last REVERSE)
  if(first EQUAL -1)
    set(fault "the text is not there: ${line_${n}}" PARENT_SCOPE)
  elseif(NOT first EQUAL last)
    set(fault "the text is there more than once: ${line_${n}}" PARENT_SCOPE)
  endif()
  string(REPLACE "${line_${n}}" "${becomes_${n}}" text "${text}")
  file(WRITE ${WORK}/${n}/${ROOM}/${file_${n}} "${text}")
  set(overlay ${WORK}/${n} PARENT_SCOPE)
endfunction()

function(try_mutant n)
  set(seconds_allowed 180)
  string(TIMESTAMP start "%s")
  make_mutant(${n})
  set(verdict "killed  ")
  if(NOT fault STREQUAL "")
    set(verdict "ERROR   ")
    set(detail "\n    ${fault}")
  else()
    foreach(test IN LISTS kills_${n})
      build_and_run(${test} "${case_${n}}" ${n} state -I${overlay})
      if(state STREQUAL "broken")
        set(verdict "ERROR   ")
        set(detail "\n    does not compile with ${test}.test.cpp:\n${output}")
        break()
      elseif(state STREQUAL "passed")
        set(verdict "SURVIVED")
        set(detail "\n    ${test}.test.cpp still passes with\n    ${line_${n}}\n    as\n    ${becomes_${n}}")
      endif()
    endforeach()
  endif()
  string(TIMESTAMP stop "%s")
  math(EXPR seconds "${stop} - ${start}")
  message(NOTICE "${verdict} ${n} ${file_${n}}: ${why_${n}} (${seconds} s)${detail}")
  file(REMOVE_RECURSE ${WORK}/${n})
  string(STRIP ${verdict} verdict)
  file(APPEND ${WORK}/${verdict}.${PART} "${n}\n")
endfunction()

function(try_test test_and_case)
  string(FIND "${test_and_case}" " " space)
  string(SUBSTRING "${test_and_case}" 0 ${space} test)
  math(EXPR space "${space} + 1")
  string(SUBSTRING "${test_and_case}" ${space} -1 case)
  string(MAKE_C_IDENTIFIER "${test_and_case}" name)
  build_and_run(${test} "${case}" ${name} state)
  if(NOT state STREQUAL "passed")
    message(NOTICE "BAD      ${test}.test.cpp does not pass without a change: ${case}\n${output}")
    file(APPEND ${WORK}/BAD.${PART} "${test}\n")
  endif()
endfunction()

# ---- as part PART of JOBS: every JOBS-th of the tests (PHASE = tests) or the mutants (PHASE = mutants)

if(NOT PART STREQUAL "")
  set(turn 0)
  if(PHASE STREQUAL "tests")
    foreach(test IN LISTS tests)
      math(EXPR turn "(${turn} + 1) % ${JOBS}")
      if(turn EQUAL PART)
        try_test("${test}")
      endif()
    endforeach()
  else()
    foreach(n RANGE 1 ${count})
      if(file_${n} MATCHES "${ONLY}")
        math(EXPR turn "(${turn} + 1) % ${JOBS}")
        if(turn EQUAL PART)
          try_mutant(${n})
        endif()
      endif()
    endforeach()
  endif()
  return()
endif()

# ---- as a whole

# Several commands of one call run side by side: a pipe, through which nothing flows because all is said to stderr.
function(run_parts phase)
  math(EXPR last "${JOBS} - 1")
  set(commands)
  foreach(part RANGE ${last})
    list(APPEND commands COMMAND ${CMAKE_COMMAND})
    foreach(variable IN ITEMS LIST COMPILER FLAGS WORK INCLUDE ROOM TESTS SYSTEM LINK ONLY JOBS)
      string(REPLACE ";" "\\;" value "${${variable}}")
      list(APPEND commands -D "${variable}=${value}")
    endforeach()
    list(APPEND commands -D PHASE=${phase} -D PART=${part} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE})
  endforeach()
  execute_process(${commands} RESULTS_VARIABLE codes)
  foreach(code IN LISTS codes)
    if(NOT code EQUAL 0)
      message(FATAL_ERROR "a part of the work came to grief: ${code}")
    endif()
  endforeach()
endfunction()

function(count_lines prefix out)
  file(GLOB files ${WORK}/${prefix}.*)
  set(sum 0)
  foreach(file IN LISTS files)
    file(STRINGS ${file} lines)
    list(LENGTH lines length)
    math(EXPR sum "${sum} + ${length}")
  endforeach()
  set(${out} ${sum} PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
set(objects)
foreach(unit IN LISTS SUPPORT)
  string(MAKE_C_IDENTIFIER ${unit} name)
  execute_process(COMMAND ${command} ${includes} -c ${tests_of_project}/${unit}.cpp -o ${WORK}/${name}.o
                  COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND objects ${WORK}/${name}.o)
endforeach()
list(PREPEND LINK ${objects})

string(TIMESTAMP begun "%s")
run_parts(tests)
count_lines(BAD bad)
if(bad GREATER 0)
  message(FATAL_ERROR "${bad} of the tests do not pass without a change")
endif()
run_parts(mutants)
count_lines(killed killed)
count_lines(SURVIVED survived)
count_lines(ERROR errors)
string(TIMESTAMP ended "%s")
math(EXPR seconds "${ended} - ${begun}")
math(EXPR tried "${killed} + ${survived} + ${errors}")
message(NOTICE "${tried} mutants: ${killed} killed, ${survived} survived, ${errors} errors; ${seconds} s")
if(survived GREATER 0 OR errors GREATER 0 OR killed EQUAL 0)
  message(FATAL_ERROR "not every mutant was killed")
endif()
