# cmake --install build/release [--prefix FOLDER]: the program, what it finds by name (scenarios, experiments, policies), the
# examples of the docs, and completion for three shells.
install(TARGETS rudderfish RUNTIME DESTINATION bin)
install(DIRECTORY scenarios experiments policies examples DESTINATION share/rudderfish
        PATTERN "*.db*" EXCLUDE PATTERN "*.sock" EXCLUDE PATTERN "runs" EXCLUDE PATTERN "__pycache__" EXCLUDE)
# The program writes its completion itself, so that it names the options of this version.
install(CODE [[
  foreach(script "bash;share/bash-completion/completions/rudderfish" "zsh;share/zsh/site-functions/_rudderfish"
                 "fish;share/fish/vendor_completions.d/rudderfish.fish")
    list(GET script 0 shell)
    list(GET script 1 path)
    set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${path}")
    get_filename_component(folder "${file}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    execute_process(COMMAND "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/rudderfish" completion ${shell} OUTPUT_FILE "${file}"
                    COMMAND_ERROR_IS_FATAL ANY)
    message(STATUS "Installing: ${file}")
  endforeach()
]])
