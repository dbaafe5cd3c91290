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

for tool in poe lapi_info lapi_perf lapi_prof lapi_top
    complete -c $tool -n 'string match -q -- "-*" (commandline -ct)' -a '(__openlapi_flags)'
    complete -c $tool -x -n 'count (__openlapi_values) >/dev/null' -a '(__openlapi_values)'
end
complete -c poe -n 'test (count (commandline -opc)) -eq 1' -a '(__fish_complete_command)'
for wrapper in \
    mpcc_r mpcc mpcc_r4 mpcc_r7 cc_r cc_r4 cc_r7 xlc xlc_r xlc_r4 xlc_r7 mpxlc mpxlc_r gxlc gxlc_r c89_r c89_r4 c89_r7 \
    c99_r c99_r4 c99_r7 c89_128 c89_128_r c89_128_r4 c89_128_r7 c99_128 c99_128_r c99_128_r4 c99_128_r7 mpcc_r128 \
    cc128 cc128_r cc128_r4 cc128_r7 xlc128 xlc128_r xlc128_r4 xlc128_r7 mpCC_r mpCC mpCC_r4 mpCC_r7 xlC xlC_r xlC_r4 \
    xlC_r7 xlc++ xlc++_r xlc++_r4 xlc++_r7 mpxlC mpxlC_r gxlC gxlC_r gxlc++ gxlc++_r mpCC_r128 xlC128 xlC128_r \
    xlC128_r4 xlC128_r7 xlc++128 xlc++128_r xlc++128_r4 xlc++128_r7 mpfort mpxlf_r mpxlf mpxlf_r7 xlf xlf_r xlf_r7 \
    mpxlf90_r mpxlf90 mpxlf90_r7 mpxlf95_r mpxlf95 mpxlf95_r7 xlf90 xlf90_r xlf90_r7 xlf95 xlf95_r xlf95_r7 \
    mpxlf2003_r mpxlf2003 mpxlf2003_r7 mpxlf2008_r mpxlf2008 xlf2003 xlf2003_r xlf2003_r7 xlf2008 xlf2008_r xlf2008_r7
    complete -c $wrapper -n 'string match -q -- "-*" (commandline -ct)' -a '-show -compiler -mpi -q64 -q32 -qfixed -qfree'
end
