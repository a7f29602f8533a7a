# rudderfish_module(NAME [DEPENDS module...] [LIBRARIES target...]): the folder src/NAME as one static
# library, its *_test.cc files as one test binary. DEPENDS are the only modules it may include; they are
# the edges of the table in docs/architecture.md.
include(GoogleTest)
find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)

function(rudderfish_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/main\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(RUDDERFISH_SANITIZE STREQUAL "thread")
    # A test that starts no thread has nothing to show there.
    foreach(test ${tests})
      file(STRINGS ${test} threads LIMIT_COUNT 1 REGEX "thread")
      if(NOT threads)
        list(REMOVE_ITEM tests ${test})
      endif()
    endforeach()
  endif()
  if(NOT sources)
    message(FATAL_ERROR "module ${name} has no sources")
  endif()
  add_library(rudderfish_${name} STATIC ${sources})
  target_include_directories(rudderfish_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(dependency ${ARG_DEPENDS})
    target_link_libraries(rudderfish_${name} PUBLIC rudderfish_${dependency})
  endforeach()
  target_link_libraries(rudderfish_${name} PUBLIC Threads::Threads tl::expected ${ARG_LIBRARIES})
  if(name IN_LIST RUDDERFISH_MUTATED)
    target_compile_options(rudderfish_${name} PRIVATE -O1 -w -D_GLIBCXX_ASSERTIONS)
  else()
    set_target_properties(rudderfish_${name} PROPERTIES UNITY_BUILD ${RUDDERFISH_UNITY} UNITY_BUILD_BATCH_SIZE 40)
  endif()
  if(name MATCHES "^(nn|model|task|policy|sim|learn)$")
    # Their tests compute for long, which optimising shortens by more than it takes; of the others it is the reverse.
    target_compile_options(rudderfish_${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  elseif(name MATCHES "^(run|cli)$")
    target_compile_options(rudderfish_${name} PRIVATE $<$<CONFIG:Release>:-O1>)  # They put others together.
  elseif(name MATCHES "^(net|kube|telemetry|scenario|control|compat|serve|evaluation|report)$")
    # These wait more than they compute; -O3 would make them larger and take longer to compile.
    target_compile_options(rudderfish_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  if(RUDDERFISH_FUZZ AND name MATCHES "^(base|nn|cluster|kube|model|scenario|compat|telemetry|control|evaluation)$")
    target_compile_options(rudderfish_${name} PRIVATE -fsanitize=fuzzer-no-link)  # Who reads what comes from outside.
  endif()
  if(tests)
    rudderfish_test(${name}_test SOURCES ${tests} LIBRARIES rudderfish_${name})
  endif()
endfunction()

# The frameworks' headers, parsed once for all test binaries instead of once a test file. Clang includes them in each: ccache takes the path
# of its precompiled header for a part of the source, and every clone would compile all tests again.
set(testing_headers gmock/gmock.h gtest/gtest.h rapidcheck/gtest.h)
add_library(rudderfish_testing OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/empty.cc)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(TRANSFORM testing_headers REPLACE "(.+)" "<\\1>")
  target_precompile_headers(rudderfish_testing PRIVATE ${testing_headers})
endif()

add_library(rudderfish_source_path STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/support/source_path.cc)
target_include_directories(rudderfish_source_path PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_definitions(rudderfish_source_path PRIVATE RUDDERFISH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

# Test code need not be fast, and optimising it is what takes long. -fpch-preprocess lets ccache see
# through precompiled headers.
function(rudderfish_test_options name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
  target_link_libraries(${name} PRIVATE rudderfish_base rudderfish_source_path GTest::gtest GTest::gmock GTest::gtest_main
                        ${RAPIDCHECK_LIBRARY})
endfunction()
rudderfish_test_options(rudderfish_testing)

# Its operator new takes the place of the usual one in those binaries alone that mention its counter.
add_library(rudderfish_counting STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/support/count_allocations.cc)
target_include_directories(rudderfish_counting PRIVATE ${CMAKE_SOURCE_DIR})

# rudderfish_test(NAME SOURCES file... LIBRARIES target... [LABEL label]): one GoogleTest binary, its cases
# as tests.
function(rudderfish_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} rudderfish_counting)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})  # For tests/support/.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${name} REUSE_FROM rudderfish_testing)
  else()
    foreach(header ${testing_headers})
      target_compile_options(${name} PRIVATE "SHELL:-include ${header}")
    endforeach()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${RUDDERFISH_UNITY})
  rudderfish_test_options(${name})
  # The thread sanitizer takes up to thirty times as long, on a machine that does other things twice that.
  set(timeout 300)
  if(RUDDERFISH_SANITIZE)
    set(timeout 900)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${timeout})
endfunction()
