# Our own targets link vckpt_warnings privately; nothing of it reaches users of the installed package.
add_library(vckpt_warnings INTERFACE)
target_compile_options(vckpt_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror=return-type)
