# Makes the table of paths.sh. Each input line: way name size median best before after (microseconds, microseconds, nanoseconds,
# nanoseconds); way is a value of LAPI_SHM_BULK.

function class_of(ns) { return ns < 45 ? "near" : ns < 130 ? "middle" : "far" }
function show(us) { return us < 1 ? sprintf("%.3f", us) : us < 100 ? sprintf("%.2f", us) : sprintf("%.0f", us) }
function bytes(size) { return size >= 1048576 ? size / 1048576 " MiB" : size / 1024 " KiB" }

function middle(way, row,    sorted, i, j, n, value) {
    n = count[way, row]
    for (i = 1; i <= n; i++) {
        value = time[way, row, i]
        for (j = i - 1; j >= 1 && sorted[j] > value; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = value
    }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

BEGIN {
    split("am put_notify get am_stream put_stream get_stream", patterns)
    split("active message, one way;put with target counter, one way;get;active message, window;put until complete, window;get, window", titles, ";")
}

NF == 7 && class_of($6) == class_of($7) {
    row = $2 " " $3 " " class_of($6)
    time[$1, row, ++count[$1, row]] = $4
    if (!($3 in known)) { known[$3] = 1; sizes[++kinds] = $3 }
}

END {
    split("near middle far", classes)
    head = "\n| auto / best, and the best where it is another one (µs) | line |"; rule = "|---|---|"
    for (s = 1; s <= kinds; s++) { head = head " " bytes(sizes[s]) " |"; rule = rule "---:|" }
    print head "\n" rule
    for (p = 1; p in patterns; p++) for (c = 1; c <= 3; c++) {
        cells = ""; some = 0
        for (s = 1; s <= kinds; s++) {
            row = patterns[p] " " sizes[s] " " classes[c]
            if (!count["auto", row] || !count["pipeline", row] || !count["attach", row]) { cells = cells " - |"; continue }
            some = 1
            auto = middle("auto", row); stream = middle("pipeline", row); copy = middle("attach", row)
            quotient = auto / (stream < copy ? stream : copy)
            if (quotient > most) { most = quotient; worst = titles[p] " of " bytes(sizes[s]) ", " classes[c] }
            cells = cells sprintf(" %.2f%s |", quotient, quotient <= 1.1 ? "" : sprintf(" (%s: %s, %s)", copy < stream ? "attach" : "pipeline", show(auto), show(copy < stream ? copy : stream)))
        }
        if (some) print "| " titles[p] " | " classes[c] " |" cells
    }
    printf "\nThe aim is at most 1.1 in each case; the most is %.2f (%s).\n", most, worst
}
