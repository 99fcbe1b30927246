# Runs PROGRAM, with FIRST_ARGUMENT if it is not empty and the lines of the file ARGUMENTS if it exists, and compares its
# standard output with the file EXPECTED, line by line. A line of that file that begins with "~ " is a regular expression
# for the whole line.
cmake_minimum_required(VERSION 3.25)

if(NOT EXISTS ${EXPECTED})
  message(FATAL_ERROR "${EXPECTED} is missing: it says what the program prints")
endif()
if(EXISTS ${ARGUMENTS})
  file(STRINGS ${ARGUMENTS} arguments)  # one a line
endif()
execute_process(COMMAND ${PROGRAM} ${FIRST_ARGUMENT} ${arguments} RESULT_VARIABLE code OUTPUT_VARIABLE actual)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}; it printed:\n${actual}")
endif()
file(READ ${EXPECTED} expected)

# Without list operations: lines may hold brackets and semicolons.
set(number 0)
set(rest_actual "${actual}")
while(NOT "${expected}${rest_actual}" STREQUAL "")
  math(EXPR number "${number} + 1")
  foreach(text IN ITEMS expected rest_actual)
    string(FIND "${${text}}" "\n" end)
    if(end EQUAL -1)
      set(${text}_line "${${text}}")
      set(${text} "")
    else()
      string(SUBSTRING "${${text}}" 0 ${end} ${text}_line)
      math(EXPR end "${end} + 1")
      string(SUBSTRING "${${text}}" ${end} -1 ${text})
    endif()
  endforeach()
  if(expected_line MATCHES "^~ (.*)$")
    if(rest_actual_line MATCHES "^(${CMAKE_MATCH_1})$")
      continue()
    endif()
  elseif("${expected_line}" STREQUAL "${rest_actual_line}")
    continue()
  endif()
  message(FATAL_ERROR
    "line ${number} differs\n  expected: ${expected_line}\n  printed:  ${rest_actual_line}\nthe whole output:\n${actual}")
endwhile()
