# Completion of poe, of its kin and of the compiler wrappers, for bash. The flags and their values are those that each program
# names in its help text, so that this file does not change with them.

_openlapi() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} help
    COMPREPLY=()
    help=$("${COMP_WORDS[0]}" --help 2>/dev/null) || return
    # With = as a word of its own, as bash splits -flag=value.
    if [[ $word == "=" ]]; then
        word=
    elif [[ $before == "=" && COMP_CWORD -gt 1 ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $before == -* && $help =~ (^|[[:space:]])"$before"\ \[?([a-z0-9]+(\|[a-z0-9]+)+) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "${BASH_REMATCH[2]//|/ }" -- "$word")
    elif [[ $word == -* ]]; then
        local flags
        flags=$(grep -oE '^  (-[^ ,]+[^,]*, )*--?[a-z][a-z_-]*' <<<"$help" | grep -oE -- '--?[a-z][a-z_-]*')
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
    elif [[ ${COMP_WORDS[0]##*/} == poe && $word != */* && $before != -* ]]; then
        # A program, until there is one.
        ((COMP_CWORD == 1)) && mapfile -t COMPREPLY < <(compgen -c -- "$word")
    fi
}

_openlapi_wrapper() {
    COMPREPLY=()
    [[ ${COMP_WORDS[COMP_CWORD]} == -* ]] || return
    mapfile -t COMPREPLY < <(compgen -W "-show -compiler -mpi -q64 -q32 -qfixed -qfree" -- "${COMP_WORDS[COMP_CWORD]}")
}

complete -o default -F _openlapi poe lapi_info lapi_perf lapi_prof lapi_top
complete -o default -F _openlapi_wrapper \
    mpcc_r mpcc mpcc_r4 mpcc_r7 cc_r cc_r4 cc_r7 xlc xlc_r xlc_r4 xlc_r7 mpxlc mpxlc_r gxlc gxlc_r c89_r c89_r4 c89_r7 \
    c99_r c99_r4 c99_r7 c89_128 c89_128_r c89_128_r4 c89_128_r7 c99_128 c99_128_r c99_128_r4 c99_128_r7 mpcc_r128 \
    cc128 cc128_r cc128_r4 cc128_r7 xlc128 xlc128_r xlc128_r4 xlc128_r7 mpCC_r mpCC mpCC_r4 mpCC_r7 xlC xlC_r xlC_r4 \
    xlC_r7 xlc++ xlc++_r xlc++_r4 xlc++_r7 mpxlC mpxlC_r gxlC gxlC_r gxlc++ gxlc++_r mpCC_r128 xlC128 xlC128_r \
    xlC128_r4 xlC128_r7 xlc++128 xlc++128_r xlc++128_r4 xlc++128_r7 mpfort mpxlf_r mpxlf mpxlf_r7 xlf xlf_r xlf_r7 \
    mpxlf90_r mpxlf90 mpxlf90_r7 mpxlf95_r mpxlf95 mpxlf95_r7 xlf90 xlf90_r xlf90_r7 xlf95 xlf95_r xlf95_r7 \
    mpxlf2003_r mpxlf2003 mpxlf2003_r7 mpxlf2008_r mpxlf2008 xlf2003 xlf2003_r xlf2003_r7 xlf2008 xlf2008_r xlf2008_r7
