# Makes parts of names findable: the search of a site knows whole words and their beginnings, and LAPI_Waitcntr is one word. Behind each
# section of a page stands a paragraph that is not shown, with the parts of the names in it: Waitcntr; of LAPI_ERR_TGT, ERR_TGT and TGT.

function flush_words(    word, line) {
    for (word in words) line = line " " word
    delete words
    if (line != "") printf "\n<div hidden>\n\n%s\n\n</div>\n\n", substr(line, 2)
}

# A block of code is no place for a paragraph; nor has it headings.
/^ *(```|~~~)/ { fenced = !fenced }
/^#+ / && !fenced { flush_words() }
{
    rest = $0
    gsub(/\\_/, "_", rest)
    while (match(rest, /[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)+/)) {
        name = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        while ((at = index(name, "_")) > 0) {
            name = substr(name, at + 1)
            if (length(name) > 1) words[name] = 1
        }
    }
    print
}
END { flush_words() }
