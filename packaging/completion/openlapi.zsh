#compdef poe lapi_info lapi_perf lapi_prof mpcc_r mpcc mpCC_r mpCC cc_r mpxlf_r mpxlf mpxlf90_r mpxlf90 xlf_r mpfort
# Completion for zsh. The flags and their values are those that each program names in its help text, so that this file does not
# change with them.

local help before=${words[CURRENT-1]}
local -a flags values match

case ${service} in
mp* | cc_r | xlf_r)
    if [[ ${words[CURRENT]} == -* ]]; then
        compadd -- -show -compiler -mpi -q64 -q32 -qfixed -qfree
    else
        _files
    fi
    return
    ;;
esac
help=$(${words[1]} --help 2>/dev/null) || return
if [[ $before == -* && $help =~ "(^|[[:space:]])${before} \[?([a-z0-9]+(\|[a-z0-9]+)+)" ]]; then
    values=(${(s:|:)match[2]})
    compadd -- $values
elif [[ ${words[CURRENT]} == -* ]]; then
    flags=(${(f)"$(grep -oE '^  (-[^ ,]+[^,]*, )*--?[a-z][a-z_-]*' <<<$help | grep -oE -- '--?[a-z][a-z_-]*')"})
    compadd -- $flags
elif [[ $service == poe && CURRENT -eq 2 ]]; then
    _alternative 'commands:program:_command_names -e' 'files:program:_files'
else
    _files
fi
