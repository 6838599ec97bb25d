# Installs the package out of BUILD_FOLDER into FOLDER, builds the consumer against it and runs it.
# cmake -D BUILD_FOLDER=... -D FOLDER=... -D COMPILER=... -D FLAGS=... -D GENERATOR=... -P build_and_run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${FOLDER})
run(${CMAKE_COMMAND} --install ${BUILD_FOLDER} --prefix ${FOLDER}/prefix --component vckpt_worker)
file(GLOB_RECURSE headers RELATIVE ${FOLDER}/prefix ${FOLDER}/prefix/*.h)
foreach(header ${headers})
  if(NOT header MATCHES "^include/vckpt/(worker|schema/[a-z]+)\\.h$")
    message(FATAL_ERROR "installs ${header}, which is not public")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${FOLDER}/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${FOLDER}/prefix
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${FOLDER}/build)
run(${FOLDER}/build/consumer ${FOLDER}/root)
file(REMOVE_RECURSE ${FOLDER})
