# Makes the table of paths.sh, with figures.awk. Each input line: way name size median best before after (microseconds, microseconds, nanoseconds,
# nanoseconds); way is a value of LAPI_SHM_BULK.

function middle(way, row) { return median_of(time, way " " row, count[way " " row]) }

BEGIN {
    split("am put_notify get am_stream put_stream get_stream", patterns)
    split("active message, one way;put with target counter, one way;get;active message, window;put until complete, window;get, window", titles, ";")
}

NF == 7 && class_of($6) == class_of($7) {
    row = $2 " " $3 " " class_of($6)
    time[$1 " " row, ++count[$1 " " row]] = $4
    if (!($3 in known)) { known[$3] = 1; sizes[++kinds] = $3 }
}

END {
    head = "\n| auto / best, and the best where it is another one (µs) | line |"; rule = "|---|---|"
    for (s = 1; s <= kinds; s++) { head = head " " bytes(sizes[s]) " |"; rule = rule "---:|" }
    print head "\n" rule
    for (p = 1; p in patterns; p++) for (c = 1; c <= 3; c++) {
        cells = ""; some = 0
        for (s = 1; s <= kinds; s++) {
            row = patterns[p] " " sizes[s] " " c
            if (!count["auto " row] || !count["pipeline " row] || !count["attach " row]) { cells = cells " - |"; continue }
            some = 1
            auto = middle("auto", row); stream = middle("pipeline", row); copy = middle("attach", row)
            quotient = auto / (stream < copy ? stream : copy)
            if (quotient > most) { most = quotient; worst = titles[p] " of " bytes(sizes[s]) ", " class_name(c) }
            cells = cells sprintf(" %.2f%s |", quotient, quotient <= 1.1 ? "" : sprintf(" (%s: %s, %s)", copy < stream ? "attach" : "pipeline", show(auto), show(copy < stream ? copy : stream)))
        }
        if (some) print "| " titles[p] " | " class_name(c) " |" cells
    }
    printf "\nThe aim is at most 1.1 in each case; the most is %.2f (%s).\n", most, worst
}
