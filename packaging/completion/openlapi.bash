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

complete -o default -F _openlapi poe lapi_info lapi_perf lapi_prof
complete -o default -F _openlapi_wrapper mpcc_r mpcc mpCC_r mpCC cc_r mpxlf_r mpxlf mpxlf90_r mpxlf90 xlf_r mpfort
