# What PROGRAM, decant_conformance, says to input that is not right; files are made in WORK_DIR.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR}/folder)

# expect(CODE WANTED ARGUMENT...): the program must end with CODE and print WANTED, a regular expression.
function(expect code wanted)
  execute_process(COMMAND ${PROGRAM} ${ARGN}
    WORKING_DIRECTORY ${WORK_DIR} RESULT_VARIABLE actual OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT actual STREQUAL code OR NOT output MATCHES "${wanted}")
    list(JOIN ARGN " " arguments)
    message(FATAL_ERROR
      "${arguments}\nwanted: exit code ${code} and ${wanted}\nexit code ${actual}, and it printed:\n${output}")
  endif()
endfunction()

# golden(FILE CASE...): a golden file with these cases.
function(golden file)
  list(JOIN ARGN "," cases)
  file(WRITE ${WORK_DIR}/${file} "{\"format\":\"decant-golden/1\",\"cases\":[${cases}]}")
endfunction()

# suppressed(NAME EXPECTED): a case that passes if EXPECTED is [null,2].
function(suppressed variable name expected)
  string(CONCAT text "{\"name\":\"${name}\",\"processor\":\"suppress_tokens\",\"params\":{\"suppress_tokens\":[0]},"
    "\"input_ids\":[1],\"logits\":[1,2],\"expected\":${expected}}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

suppressed(right "right" "[null,2]")
suppressed(wrong "wrong" "[null,3]")
suppressed(unmasked "unmasked" "[1,2]")
suppressed(short "short" "[null]")
golden(right.json "${right}")
golden(wrong.json "${right}" "${wrong}")

# The usage.
expect(0 "Usage: .*FILE.*--corrupt.*--deliberate.*Exit codes" --help)
expect(0 "pipeline: supported.*DoLa: not supported yet" --list)
expect(106 "FILE" --corrupt)
expect(109 "--unknown" --unknown right.json)

# Right and wrong cases.
expect(0 "right.json: 1 passed, 0 failed, 0 deliberate\ntotal: 1 passed, 0 failed, 0 deliberate\n$" right.json)
expect(0 "right.json#0 right: passed\n" --verbose right.json)
expect(1 "wrong.json#1 wrong: FAILED: /expected/1: expected 3, computed 2.0\nwrong.json: 1 passed, 1 failed" wrong.json)
golden(unmasked.json "${unmasked}" "${short}")
expect(1 "/expected/0: expected 1, computed null.*#1 short: FAILED: .*total: 0 passed, 2 failed" unmasked.json)
expect(1 "total: 0 passed, 2 failed, 0 deliberate\n$" --corrupt wrong.json)
expect(1 "total: 0 passed, 1 failed, 0 deliberate\n$" --corrupt right.json)

# Cases that cannot be computed fail, and do not end the run.
string(REPLACE "\"params\":{\"suppress_tokens\":[0]}" "\"params\":{}" no_parameter "${right}")
string(REPLACE "\"suppress_tokens\":[0]" "\"suppress_tokens\":[7]" outside "${right}")
string(REPLACE "\"logits\":[1,2]" "\"logits\":[1,\"two\"]" no_number "${right}")
string(REPLACE ",\"expected\":[null,2]" "" no_expectation "${right}")
golden(broken_cases.json "${no_parameter}" "${outside}" "${no_number}" "${no_expectation}" "${right}")
expect(1
  "cannot be computed.*cannot be computed.*not a logit: \"two\".*nothing about what is expected.*: 1 passed, 4 failed"
  broken_cases.json)

# Files that cannot be checked: an exit code of its own, and the others are checked all the same.
expect(2 "missing.json: cannot be read.*total: 1 passed" missing.json right.json)
expect(2 "folder: cannot be read" folder)
file(WRITE ${WORK_DIR}/empty.json "")
expect(2 "empty.json: is not JSON" empty.json)
file(WRITE ${WORK_DIR}/cut.json "{\"format\":\"decant-golden/1\",\"cases\":[{")
expect(2 "cut.json: is not JSON" cut.json)
file(WRITE ${WORK_DIR}/list.json "[]")
expect(2 "list.json: is not a JSON object" list.json)
file(WRITE ${WORK_DIR}/other.json "{\"format\":\"decant-golden/2\",\"cases\":[${right}]}")
expect(2 "other.json: unknown format \"decant-golden/2\".*total: 0 passed" other.json)
file(WRITE ${WORK_DIR}/formless.json "{\"cases\":[${right}]}")
expect(2 "formless.json: unknown format null" formless.json)
golden(caseless.json)
expect(2 "caseless.json: holds no cases" caseless.json)
golden(strange.json "{\"processor\":\"astrology\"}" "{\"name\":\"neither\"}" "17" "${right}")
expect(2 "unsupported kind: astrology \\(1 case .*kind: unknown \\(2 cases .*1 passed, 0 failed.*, 3 not checked" strange.json)
golden(later.json "{\"premature_logits\":[],\"final_logits\":[]}")
expect(2 "later.json: unsupported kind: DoLa \\(1 case not checked\\)" later.json)
expect(2 "unsupported kind: DoLa" --corrupt later.json)

# Deliberate differences, by place and by name; each has to be one.
function(deliberate)
  list(JOIN ARGN "\n" lines)
  file(WRITE ${WORK_DIR}/deliberate.txt "# a comment\n\n${lines}\n")
endfunction()

set(given --deliberate deliberate.txt)
deliberate("wrong.json#1 -- three")
expect(0 "total: 1 passed, 0 failed, 1 deliberate\n$" ${given} wrong.json)
expect(0 "#1 wrong: differs deliberately: three\n" ${given} --verbose wrong.json)
expect(0 "total: 1 passed, 0 failed, 0 deliberate\n$" ${given} right.json)
expect(1 "total: 0 passed, 2 failed, 0 deliberate\n$" ${given} --corrupt wrong.json)
deliberate("wrong -- three")
expect(0 "total: 1 passed, 0 failed, 1 deliberate\n$" ${given} wrong.json)
deliberate("wrong -- three" "wrong.json#0 -- stale")
expect(1 "#0 right: FAILED: .*does not differ.*total: 0 passed, 1 failed, 1 deliberate\n$" ${given} wrong.json)
deliberate("wrong -- three" "wrong.json#2 -- beyond")
expect(1 "wrong.json#2: FAILED: .*no such case.*total: 1 passed, 1 failed, 1 deliberate\n$" ${given} wrong.json)
deliberate("broken_cases.json#1 -- what cannot be computed does not differ")
expect(1 "total: 1 passed, 4 failed, 0 deliberate\n$" ${given} broken_cases.json)
deliberate("wrong.json#1")
expect(2 "deliberate.txt: not \"which -- reason\": wrong.json#1" ${given} wrong.json)
deliberate("wrong.json#1 -- once" "wrong.json#1 -- twice")
expect(2 "deliberate.txt: listed twice: wrong.json#1" ${given} wrong.json)
expect(2 "nowhere.txt: cannot be read" --deliberate nowhere.txt right.json)
set(many "")
foreach(i RANGE 1 25)
  list(APPEND many "other.json#${i} -- reason ${i}")
endforeach()
deliberate(${many})
expect(0 "total: 1 passed" ${given} right.json)
deliberate(${many} "other.json#26 -- one too many")
expect(2 "deliberate.txt: lists 26 differences, at most 25 may be" ${given} right.json)
