# Completion for fish. The flags and their values are those that each program names in its help text, so that this file does not
# change with them.

function __openlapi_flags
    set -l words (commandline -opc)
    $words[1] --help 2>/dev/null | grep -oE '^  (-[^ ,]+[^,]*, )*--?[a-z][a-z_-]*' | grep -oE -- '--?[a-z][a-z_-]*'
end

function __openlapi_values
    set -l words (commandline -opc)
    set -l flag $words[-1]
    string match -q -- '-*' $flag; or return
    $words[1] --help 2>/dev/null | string match -rg -- "(?:^|\s)$flag \[?([a-z0-9]+(?:\|[a-z0-9]+)+)" | head -n 1 | string split '|'
end

for tool in poe lapi_info lapi_perf lapi_prof
    complete -c $tool -n 'string match -q -- "-*" (commandline -ct)' -a '(__openlapi_flags)'
    complete -c $tool -x -n 'count (__openlapi_values) >/dev/null' -a '(__openlapi_values)'
end
complete -c poe -n 'test (count (commandline -opc)) -eq 1' -a '(__fish_complete_command)'
for wrapper in mpcc_r mpcc mpCC_r mpCC cc_r mpxlf_r mpxlf mpxlf90_r mpxlf90 xlf_r mpfort
    complete -c $wrapper -n 'string match -q -- "-*" (commandline -ct)' -a '-show -compiler -mpi -q64 -q32 -qfixed -qfree'
end
